"""The browser's half of the page: three polled components, the two libraries that they draw with, a masked field.

A library travels once, with the page; what is polled carries a few hundred bytes of script and a delta. Inlined in the
polled component, vis-network alone would cost 476 kB per poll. Both libraries come from installed Python packages, so
the page works with the network cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import plotly
import pyvis
import streamlit as st

from specviz.metrics import RunState
from specviz.views import palette, text
from specviz.views.feed import Cursor, Need
from specviz.views.tree import TreeView, network_options

_HERE = Path(__file__).parent / "browser"
_VIS = Path(pyvis.__file__).parent / "lib" / "vis-9.1.2" / "vis-network.min.js"
_PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"

TREE_HINT = (
    "Drag to move, scroll to zoom; double-click to follow the newest token again. Size: entropy. "
    "Opacity: acceptance probability."
)


def _ours(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _library(name: str, bundle: Path, *scripts: str, constants: str = "") -> str:
    parts = [bundle.read_text(encoding="utf-8"), _ours("feed.js"), constants, *map(_ours, scripts), _ours("library.js")]
    return "\n".join(parts).replace("LIBRARY", name)


def _start(library: str, renderer: str) -> str:
    return _ours("start.js").replace("LIBRARY", library).replace("RENDERER", renderer)


_component = st.components.v2.component
_vis = _component(
    "specviz_vis",
    js=_library(
        "vis",
        _VIS,
        "tree.js",
        "text.js",
        constants=f"specviz.looks = {json.dumps(palette.to_json())};"
        f"specviz.networkOptions = {json.dumps(network_options())};",
    ),
)
_plotly = _component("specviz_plotly", js=_library("plotly", _PLOTLY, "charts.js"))
_tree = _component(
    "specviz_tree",
    html=f'<div class="network" role="img" aria-label="Token tree"></div><div class="legend"></div>'
    f'<div class="hint">{TREE_HINT}</div>',
    css=palette.css_variables() + _ours("tree.css"),
    js=_start("vis", "tree"),
)
_text = _component(
    "specviz_text",
    html='<div class="text" role="group" aria-label="Output, one element per token; arrow keys move"></div>'
    '<div class="tip" id="tip" role="tooltip" hidden></div>',
    css=palette.css_variables() + _ours("text.css"),
    js=_start("vis", "text"),
)
_charts = _component(
    "specviz_charts",
    # Plotly puts its style sheet into the document, where a shadow root would not see it.
    isolate_styles=False,
    html='<div class="charts"></div>',
    css=_ours("charts.css"),
    js=_start("plotly", "charts"),
)

_key_field = _component(
    "specviz_key",
    html='<div class="field"><div class="label">API key</div>'
    '<div class="entry"><input type="password" aria-label="API key" autocomplete="off" spellcheck="false">'
    '<button type="button">Set</button></div>'
    '<div class="held" hidden><span></span><button type="button">Forget</button></div>'
    '<div class="note" role="alert" hidden></div></div>',
    css=_ours("key.css"),
    js=_ours("key.js"),
)


class LiveView:
    """What one browser tab has been sent of one run. Lives in the session, beside the run."""

    def __init__(self) -> None:
        self.tree_view = TreeView()
        self.tree_cursor = Cursor()
        self.text_cursor = Cursor()

    def resend(self) -> None:
        """Send everything next time: after a full page run the browser may hold nothing."""
        self.tree_cursor.rewind()
        self.text_cursor.rewind()

    def show_tree(self, state: RunState, run: str) -> None:
        """Draw the tree on from what the browser has."""
        base = self.tree_cursor.base(run, _need("tree"))
        delta = self.tree_view.delta(state, run, base)
        self.tree_cursor.sent = delta["to"]
        _tree(key="tree", data={**delta, "counts": dict(self.tree_view.counts)}, on_need_change=_nothing)

    def show_text(self, state: RunState, run: str, placeholder: str) -> None:
        """Write the text on from what the browser has; `placeholder` stands where there is no text."""
        base = self.text_cursor.base(run, _need("text"))
        delta = text.delta(state, run, base)
        self.text_cursor.sent = delta["to"]
        _text(key="text", data={**delta, "placeholder": placeholder}, on_need_change=_nothing)


def show_charts(figures: list[Any], run: str) -> None:
    """Redraw plotly figures in place."""
    _charts(key="charts", data={"run": run, "figures": [json.loads(f.to_json()) for f in figures]})


def show_key_field(key: str, data: dict[str, Any], on_change: Callable[[], None]) -> None:
    """Draw the masked field; what it sends is in the session state under `key` until the page has run."""
    _key_field(key=key, data=data, on_key_change=on_change, on_forget_change=on_change)


def load_libraries() -> None:
    """Bring vis-network and Plotly into the page. Once per page, outside every fragment."""
    _vis(key="library_vis")
    _plotly(key="library_plotly")


def _need(key: str) -> Need | None:
    return cast("Need | None", (st.session_state.get(key) or {}).get("need"))


def _nothing() -> None:
    """A component reports state only where it has a callback; the next poll reads it."""
