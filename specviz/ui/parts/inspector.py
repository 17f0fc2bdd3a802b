"""The decision inspector: what is known about the chosen token."""

from __future__ import annotations

from typing import Any

from specviz.ui.parts import assets

_inspector = assets.component(
    "specviz_inspector",
    html='<div class="inspector"></div>',
    js=assets.start("vis", "inspector"),
)


def show_inspector(message: dict[str, Any]) -> None:
    """Show a message of `views.inspector`."""
    _inspector(key="inspector", data=message, on_need_change=assets.nothing, on_selected_change=assets.nothing)
