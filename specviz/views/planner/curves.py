"""Speed-up over K: from the measured acceptance, and with the same acceptance at every position."""

from __future__ import annotations

from typing import Any

from specviz.bench.planning.inputs import Measured
from specviz.bench.planning.model import Against, Costs, best_k, iid_speedups, speedups
from specviz.core.cost_model import Floats
from specviz.views import words
from specviz.views.figures.frame import TEXT, Chart, axis, layout, legend
from specviz.views.palette import NEUTRAL
from specviz.views.planner.frame import IID, KS, MEASURED, baseline, k_axis, mark_extrapolated


def speed_curve(measured: Measured, costs: Costs, against: Against) -> Chart:
    """Both curves, break-even, and the best K that was measured."""
    counted = speedups(measured, costs, KS, against)
    iid = iid_speedups(measured, costs, KS, against)
    known = [k for k in KS if not measured.is_extrapolated(k)]
    best = best_k(measured, costs, known)
    name = "assumed" if measured.assumed else "measured acceptance"
    data = [_line(name, known, counted, {"color": MEASURED, "width": 2.5}, "circle")]
    if len(known) < len(KS):
        dashed = {"color": MEASURED, "width": 2, "dash": "dash"}
        data.append(_line("extrapolated", KS[len(known) - 1 :], counted, dashed, "circle-open"))
    data.append(_line("same α at every position", KS, iid, {"color": IID, "width": 2, "dash": "dot"}, "x"))
    value = round(float(counted[best - 1]), 4)
    data.append(
        {
            "type": "scatter", "mode": "markers", "x": [best], "y": [value], "name": "best",
            "marker": {"symbol": "star", "size": 15, "color": TEXT},
            "hovertemplate": f"best: K = {best}, %{{y:.2f}} ×<extra></extra>",
        }
    )  # fmt: skip
    drawn = layout(330, (40, 10, 18, 78))
    drawn |= {"showlegend": True, "legend": legend(-0.2)}
    drawn["xaxis"] = axis("drafted per round, K", k_axis(KS))
    top = 1.12 * max(1.0, float(counted.max()), float(iid.max()))
    drawn["yaxis"] = axis(f"× {baseline(measured, against)}", {"range": [0, top], "nticks": 6})
    even = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1}
    drawn["shapes"] = [{**even, "line": {"color": NEUTRAL, "width": 2}}]
    mark_extrapolated(drawn, measured, KS, NEUTRAL)
    note = f"best: {words.number(value)} × {baseline(measured, against)} at K = {best}"
    return Chart("Speed-up over K", note, f"{note}; {_listed(known, counted)}", data, drawn, bad=value < 1)


def _line(name: str, ks: Any, values: Floats, line: dict[str, Any], symbol: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(ks),
        "y": [round(float(values[k - 1]), 4) for k in ks],
        "name": name,
        "line": line,
        "marker": {"symbol": symbol, "size": 7},
        "hovertemplate": f"K = %{{x}}: %{{y:.2f}} ×<extra>{name}</extra>",
    }


def _listed(ks: list[int], values: Floats) -> str:
    return ", ".join(f"K = {k}: {values[k - 1]:.2f} ×" for k in ks)
