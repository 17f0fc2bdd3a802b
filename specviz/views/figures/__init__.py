"""Charts of a run, one file each, as Plotly's own JSON.

They are plain data: plotly's classes check every field, which takes too long for a poll. The tests make that check.
"""

from specviz.views.figures.acceptance import acceptance_band, acceptance_gauge
from specviz.views.figures.billed import billed_bars
from specviz.views.figures.frame import Chart, plain
from specviz.views.figures.latency import latency_bars
from specviz.views.figures.positions import position_bars
from specviz.views.figures.rounds import round_bars
from specviz.views.figures.speed import speed_bars
from specviz.views.figures.speed_by_round import speed_lines

__all__ = [
    "Chart", "acceptance_band", "acceptance_gauge", "billed_bars", "latency_bars", "plain", "position_bars",
    "round_bars", "speed_bars", "speed_lines",
]  # fmt: skip
