"""An invisible status line that screen readers read out during a run.

Text that a live region has from the start is not read out, so the script sets it a moment later.
"""

from __future__ import annotations

from specviz.ui.parts import assets

_status = assets.component(
    "specviz_status", html='<div class="announced" role="status"></div>', css=assets.ours("status.css"),
    js=assets.ours("status.js"),
)  # fmt: skip


def show_status(text: str) -> None:
    """Have this text read out, if it differs from the last one."""
    _status(key="status", data={"text": text})
