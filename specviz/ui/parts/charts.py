"""Plotly figures, redrawn in place."""

from __future__ import annotations

import json
from typing import Any

from specviz.ui.parts import assets

_charts = assets.component(
    "specviz_charts",
    # Plotly puts its style sheet into the document, where a shadow root would not see it.
    isolate_styles=False,
    html='<div class="charts"></div>',
    css=assets.ours("charts.css"),
    js=assets.start("plotly", "charts"),
)


def show_charts(figures: list[Any], run: str) -> None:
    """Redraw plotly figures in place."""
    _charts(key="charts", data={"run": run, "figures": [json.loads(f.to_json()) for f in figures]})
