"""The token tree: one vis-network instance, fed with deltas."""

from __future__ import annotations

from typing import Any

from specviz.ui.parts import assets

HINT = (
    "Drag to move, scroll to zoom; double-click to follow the newest token again. Size: entropy. "
    "Opacity: acceptance probability."
)

_tree = assets.component(
    "specviz_tree",
    html=f'<div class="network" role="img" aria-label="Token tree"></div><div class="legend"></div>'
    f'<div class="hint">{HINT}</div>',
    js=assets.start("vis", "tree"),
)


def show_tree(message: dict[str, Any]) -> None:
    """Draw the tree on by a message of `views.tree`; `selected` in it is the id of the node that is looked at."""
    _tree(key="tree", data=message, on_need_change=assets.nothing, on_selected_change=assets.nothing)
