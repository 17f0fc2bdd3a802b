"""The token tree: one vis-network instance, fed with deltas."""

from __future__ import annotations

from typing import Any

from specviz.ui.parts import assets

#: Filled by the script: this HTML is sent with every poll.
HTML = (
    '<section class="tree"><div class="tools"></div><div class="network"></div><div class="legend"></div>'
    '<div class="hint"></div></section>'
)

_tree = assets.component(
    "specviz_tree",
    html=HTML,
    js=assets.start("vis", "tree"),
)


def show_tree(message: dict[str, Any]) -> None:
    """Send a message of `views.tree`; its `selected` is the id of the chosen node."""
    _tree(key="tree", data=message, on_need_change=assets.nothing, on_selected_change=assets.nothing)
