"""vis-network and Plotly, with our renderers."""

from __future__ import annotations

import json
from pathlib import Path

import plotly
import pyvis

from specviz.ui.parts import assets
from specviz.views import palette
from specviz.views.tree import LAYOUT, network_options

_VIS = Path(pyvis.__file__).parent / "lib" / "vis-9.1.2" / "vis-network.min.js"
_PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"

_SHARED = palette.css_variables() + assets.ours("heading.css")
_STYLES = {name: _SHARED + sheet for name, sheet in assets.styles("tree", "text", "inspector").items()}

#: The scripts of the token tree; they share one scope with the rest of the library.
_TREE = (
    "tree.js", "tree_nodes.js", "tree_fold.js", "tree_bands.js", "tree_view.js", "tree_choice.js", "tree_keys.js",
    "tree_toolbar.js",
)  # fmt: skip

#: vis-network and the renderers that come with it, as a module.
VIS_SCRIPT = assets.library(
    "vis",
    _VIS,
    "selection.js",
    *_TREE,
    "text.js",
    "inspector.js",
    constants=f"specviz.styles = {json.dumps(_STYLES)};"
    f"specviz.looks = {json.dumps(palette.to_json())};"
    f"specviz.networkOptions = {json.dumps(network_options())};"
    f"specviz.treeLayout = {json.dumps(LAYOUT)};",
)

_vis = assets.component("specviz_vis", js=VIS_SCRIPT)
_plotly = assets.component(
    "specviz_plotly",
    # The charts' style is sent once, with the library, and not with every poll.
    isolate_styles=False,
    css=assets.ours("charts.css"),
    js=assets.library("plotly", _PLOTLY, "charts.js"),
)


def load_libraries() -> None:
    """Load both. Once per page, outside every fragment."""
    _vis(key="library_vis")
    load_plotly()


def load_plotly() -> None:
    """Load only Plotly, for a page without a tree."""
    _plotly(key="library_plotly")
