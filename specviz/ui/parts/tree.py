"""The token tree: one vis-network instance, fed with deltas."""

from __future__ import annotations

from typing import Any

from specviz.ui.parts import assets

#: The script fills it: what stands here travels with every poll.
HTML = '<div class="tools"></div><div class="network"></div><div class="legend"></div><div class="hint"></div>'

_tree = assets.component(
    "specviz_tree",
    html=HTML,
    js=assets.start("vis", "tree"),
)


def show_tree(message: dict[str, Any]) -> None:
    """Draw the tree on by a message of `views.tree`; `selected` in it is the id of the node that is looked at."""
    _tree(key="tree", data=message, on_need_change=assets.nothing, on_selected_change=assets.nothing)
