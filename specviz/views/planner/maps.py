"""Maps of the speed-up over K and the round trip, and over K and the draft speed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from specviz.bench.planning.inputs import Measured
from specviz.bench.planning.model import Against, Costs, answer, best_k, break_even_map, draft_map, speedup
from specviz.core.cost_model import Floats
from specviz.views import words
from specviz.views.figures.frame import Chart, axis, layout
from specviz.views.planner import sentences
from specviz.views.planner.frame import INK, KS, baseline, k_axis, mark_extrapolated

RTT_MAX_MS = 300.0
#: Dense for short round trips, as in one building, and sparse for long ones.
_RTTS = (0, 1, 2, 5, 10, 15, 20, 30, 40, 60, 80, 100, 125, 150, 200, 250, 300)
_DRAFTS = 21
#: Orange below 1, blue above: they can be told apart with the common colour-vision deficiencies.
_SCALE = [[0.0, "#9A4B00"], [0.25, "#E39A4A"], [0.5, "#EDEDED"], [0.75, "#6BAED6"], [1.0, "#08519C"]]
_TICKS = {0.25: "¼ ×", 0.5: "½ ×", 1.0: "1 ×", 2.0: "2 ×", 4.0: "4 ×"}
#: The colour scale, in powers of two: at most and at least this wide.
_FARTHEST, _NEAREST = 2.0, 0.5


def rtt_map(measured: Measured, costs: Costs, against: Against) -> Chart:
    """Speed-up over K and round trip, with the break-even line and the chosen costs."""
    rtts = _rtts(measured)
    cells = break_even_map(measured, costs, KS, rtts, against)
    drawn = _map(cells, rtts, costs.rtt_ms, measured, costs, against, "round trip, ms")
    note = sentences.rtt_at_break_even(answer(measured, costs, KS, against))
    return Chart("Break-even over K and round trip", note, _in_words(note, cells, rtts, "round trip"), *drawn)


def draft_speed_map(measured: Measured, costs: Costs, against: Against) -> Chart:
    """Speed-up over K and the draft's time per token, at the chosen round trip."""
    drafts = np.linspace(0, draft_ceiling(measured), _DRAFTS)
    cells = draft_map(measured, costs, KS, drafts, against)
    drawn = _map(cells, drafts, costs.draft_ms, measured, costs, against, "draft, ms per token")
    note = sentences.draft_at_break_even(answer(measured, costs, KS, against))
    return Chart("Break-even over K and draft speed", note, _in_words(note, cells, drafts, "draft"), *drawn)


def rtt_ceiling(measured: Measured) -> float:
    """The longest round trip of the map: at least the measured one."""
    return max(RTT_MAX_MS, measured.rtt_ms)


def draft_ceiling(measured: Measured) -> float:
    """The slowest draft of the map: as slow as the target or twice as slow as measured, as a round number."""
    highest = max(measured.plain_ms, 2 * measured.draft_ms, 0.1)
    unit = 10.0 ** math.floor(math.log10(highest))
    return next(unit * n for n in (1, 1.5, 2, 3, 5, 7.5, 10) if unit * n >= highest * (1 - 1e-9))


def _rtts(measured: Measured) -> Floats:
    more = [rtt_ceiling(measured)] if measured.rtt_ms > RTT_MAX_MS else []
    return np.array([*_RTTS, *more], dtype=np.float64)


def _map(
    cells: Floats, ys: Floats, here: float, measured: Measured, costs: Costs, against: Against, y_title: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """All rows have the same height, so y is the number of the row."""
    logs = np.log2(np.maximum(cells, 1e-9))
    span = float(np.clip(np.abs(logs).max(), _NEAREST, _FARTHEST))
    grid: dict[str, Any] = {
        "x": list(KS),
        "y": list(range(len(ys))),
        "z": [[round(v, 4) for v in r] for r in logs.tolist()],
    }
    heat = {
        **grid,
        "type": "heatmap",
        "zmin": -span,
        "zmax": span,
        "colorscale": _SCALE,
        "xgap": 1,
        "ygap": 1,
        "customdata": [
            [[round(v, 3), f"{y:.3g}", _standing(measured, k)] for k, v in zip(KS, row, strict=True)]
            for y, row in zip(ys, cells.tolist(), strict=True)
        ],
        "text": [[f"{v:.1f}" if v > 1 else "" for v in row] for row in cells],
        "texttemplate": "%{text}",
        "textfont": {"size": 10},
        "colorbar": _colour_bar(span),
        "hovertemplate": "K = %{x}, %{customdata[1]} ms: %{customdata[0]:.2f} × "
        f"{baseline(measured, against)}<br>%{{customdata[2]}}<extra></extra>",
    }
    line = {
        **grid,
        "type": "contour",
        "contours": {"start": 0, "end": 0, "size": 1, "coloring": "none"},
        "line": {"color": INK, "width": 2.5, "smoothing": 0},
        "showscale": False,
        "hoverinfo": "skip",
        "name": "break-even",
    }
    at = float(np.interp(here, ys, np.arange(len(ys))))
    return [heat, line, _now(at, measured, costs, against)], _layout(ys, measured, y_title)


def _now(at: float, measured: Measured, costs: Costs, against: Against) -> dict[str, Any]:
    """A ring at the chosen costs and the best measured K."""
    best = best_k(measured, costs, [k for k in KS if not measured.is_extrapolated(k)])
    text = f"now: best at K = {best}, {words.number(speedup(measured, best, costs, against))} ×"
    return {
        "type": "scatter", "mode": "markers", "x": [best], "y": [round(at, 3)], "name": "now",
        "marker": {"size": 22, "color": "rgba(255,255,255,0.25)", "line": {"color": INK, "width": 3}},
        "hovertemplate": text + "<extra></extra>",
    }  # fmt: skip


def _layout(ys: Floats, measured: Measured, y_title: str) -> dict[str, Any]:
    drawn = layout(370, (52, 8, 18, 42))
    drawn["xaxis"] = axis("drafted per round, K", k_axis(KS))
    rows = range(0, len(ys), 1 if len(ys) < _DRAFTS else 2)
    ticks = {"tickvals": list(rows), "ticktext": [f"{ys[row]:.3g}" for row in rows]}
    drawn["yaxis"] = axis(y_title, {"showgrid": False, "range": [-0.5, len(ys) - 0.5], **ticks})
    mark_extrapolated(drawn, measured, KS, INK)
    return drawn


def _standing(measured: Measured, k: int) -> str:
    if measured.assumed:
        return "from your assumptions"
    return "extrapolated" if measured.is_extrapolated(k) else "from measured acceptance"


def _colour_bar(span: float) -> dict[str, Any]:
    ticks = {math.log2(factor): text for factor, text in _TICKS.items() if abs(math.log2(factor)) <= span}
    return {
        "thickness": 10, "len": 1, "outlinewidth": 0, "xpad": 6, "tickvals": list(ticks),
        "ticktext": list(ticks.values()), "tickfont": {"size": 11},
    }  # fmt: skip


def _in_words(note: str, cells: Floats, ys: Floats, what: str) -> str:
    """The best K of some rows, for screen readers."""
    some: Sequence[int] = (0, len(ys) // 3, 2 * len(ys) // 3, len(ys) - 1)
    best = (f"{what} {ys[i]:.3g} ms: best {cells[i].max():.2f} × at K = {KS[int(cells[i].argmax())]}" for i in some)
    return "; ".join([note, *best])
