"""Plotly charts, redrawn in place: those of a run, and rows of charts on other pages."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import streamlit as st

from specviz.ui.parts import assets
from specviz.views.charts import Place
from specviz.views.figures import Chart

_charts = assets.component(
    "specviz_charts",
    # Plotly puts its style sheet into the document, where a shadow root would not see it.
    isolate_styles=False,
    html='<section class="charts"></section>',
    js=assets.start("plotly", "charts"),
)


def key_of(place: Place) -> str:
    """The key of the component that draws the charts of this place."""
    return f"charts_{place}"


def show_charts(place: Place, message: dict[str, Any]) -> None:
    """Send a message of `views.charts` to the charts of a place; its `shown` names all charts of the run, in order."""
    data = {**message, "label": f"Charts {place} the tree"}
    _charts(key=key_of(place), data=data, on_need_change=assets.nothing)


def show_row(key: str, label: str, charts: Mapping[str, Chart]) -> None:
    """Draw these charts in a row; all of them are sent whenever one has changed.

    Each message is complete, so one may get lost. A screen reader lists the row by its `label`.
    """
    items = [{"name": name, "figure": chart.to_json()} for name, chart in charts.items()]
    drawn, rev, sent = st.session_state.get(f"{key}_sent") or (secrets.token_hex(4), 0, None)
    rev += items != sent
    st.session_state[f"{key}_sent"] = (drawn, rev, items)
    message = {"run": drawn, "from": 0, "to": rev, "items": items, "shown": list(charts), "label": label}
    _charts(key=key, data=message, on_need_change=assets.nothing)
