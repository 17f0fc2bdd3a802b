"""Plotly charts, redrawn in place: one row of them beside the tree and one below."""

from __future__ import annotations

from typing import Any

from specviz.ui.parts import assets
from specviz.views.charts import Place

_charts = assets.component(
    "specviz_charts",
    # Plotly puts its style sheet into the document, where a shadow root would not see it.
    isolate_styles=False,
    html='<div class="charts"></div>',
    js=assets.start("plotly", "charts"),
)


def key_of(place: Place) -> str:
    """The key of the component that draws the charts of this place."""
    return f"charts_{place}"


def show_charts(place: Place, message: dict[str, Any]) -> None:
    """Draw the charts on by a message of `views.charts`; `shown` in it names all that the run has, in order."""
    _charts(key=key_of(place), data=message, on_need_change=assets.nothing)
