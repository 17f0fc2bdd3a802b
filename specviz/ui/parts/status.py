"""What a screen reader reads out while a run goes on. Nothing of it is seen.

What is in a live region from its beginning is not read out, so the words come into it a moment after it is there.
"""

from __future__ import annotations

from specviz.ui.parts import assets

_status = assets.component(
    "specviz_status", html='<div class="announced" role="status"></div>', css=assets.ours("status.css"),
    js=assets.ours("status.js"),
)  # fmt: skip


def show_status(said: str) -> None:
    """Have these words read out, if they are others than before."""
    _status(key="status", data={"said": said})
