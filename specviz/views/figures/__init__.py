"""Charts of a run, one file each, as Plotly's own JSON.

They are written down as plain data: building them through plotly's classes, which check every field, takes longer than a
poll may. The tests do that check.
"""

from specviz.views.figures.acceptance import acceptance_band, acceptance_gauge
from specviz.views.figures.billed import billed_bars
from specviz.views.figures.frame import Chart, plain
from specviz.views.figures.latency import latency_bars
from specviz.views.figures.pace import pace_lines
from specviz.views.figures.positions import position_bars
from specviz.views.figures.rounds import round_bars
from specviz.views.figures.speed import speed_bars

__all__ = [
    "Chart", "acceptance_band", "acceptance_gauge", "billed_bars", "latency_bars", "pace_lines", "plain",
    "position_bars", "round_bars", "speed_bars",
]  # fmt: skip
