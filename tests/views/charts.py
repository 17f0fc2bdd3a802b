"""Helpers for tests of charts."""

from __future__ import annotations

import json
from typing import Any

import plotly.graph_objects as go

from specviz.views.figures import Chart


def drawn(chart: Chart) -> go.Figure:
    """The chart as a plotly figure, whose classes check every field."""
    data = json.loads(json.dumps(chart.to_json(), allow_nan=False).replace('"@text"', '"#123456"'))
    return go.Figure(data["data"], data["layout"])


def texts(chart: Chart | None) -> list[str]:
    assert chart is not None
    return [a["text"] for a in chart.layout["annotations"]]


def traces(chart: Chart | None) -> dict[str, dict[str, Any]]:
    """Name → trace."""
    assert chart is not None
    return {trace["name"]: trace for trace in chart.data}
