"""The K-th position: the tokens that it adds, and those that its time would have given without it."""

from __future__ import annotations

from typing import Any

from specviz.bench.planning.inputs import Measured
from specviz.bench.planning.model import Against, Costs, Marginal, marginal
from specviz.views.figures.frame import Chart, axis, layout, legend
from specviz.views.planner.frame import COST, KS, MEASURED, k_axis, mark_extrapolated
from specviz.views.planner.sentences import spans


def marginal_bars(measured: Measured, costs: Costs, against: Against) -> Chart:
    """A pair of bars per position; the position pays where the first bar is higher."""
    steps = marginal(measured, costs, KS, against)
    data = [
        _bars("tokens gained", [s.tokens for s in steps], MEASURED, steps),
        _bars("its time, in tokens without it", [s.cost_tokens for s in steps], COST, steps),
    ]
    drawn = layout(330, (40, 10, 18, 78))
    drawn |= {"showlegend": True, "legend": legend(-0.2), "barmode": "group", "bargap": 0.25, "bargroupgap": 0.05}
    drawn["xaxis"] = axis("position in the block", k_axis(KS))
    # A slow round may cost many tokens: the axis is cut so that the gain stays readable.
    most = max(0.1, *(s.tokens for s in steps))
    top = max(most, *(min(s.cost_tokens, 1.5 * most) for s in steps))
    low = min(0.0, *(max(s.cost_tokens, -most) for s in steps))
    drawn["yaxis"] = axis("tokens per round", {"range": [1.1 * low, 1.1 * top], "nticks": 6})
    mark_extrapolated(drawn, measured, KS, "#8A93A3")
    paying = [s.k for s in steps if s.pays]
    note = f"worth their time: {spans(paying)}" if paying else "no position is worth its time"
    listed = "; ".join(f"position {s.k}: {s.tokens:.2f} gained for {s.cost_tokens:.2f}" for s in steps)
    return Chart("Marginal gain of the K-th position", note, f"{note}; {listed}", data, drawn, bad=not paying)


def _bars(name: str, values: list[float], colour: str, steps: list[Marginal]) -> dict[str, Any]:
    return {
        "type": "bar",
        "x": [s.k for s in steps],
        "y": [round(v, 4) for v in values],
        "name": name,
        "customdata": [[round(s.ms, 2), f"{s.gain:+.3f}", _standing(s)] for s in steps],
        "marker": {
            "color": colour,
            # Hatched where it is extrapolated.
            "pattern": {"shape": ["/" if s.is_extrapolated else "" for s in steps], "size": 6},
        },
        "hovertemplate": f"position %{{x}}: %{{y:.2f}} {name}<br>%{{customdata[0]:.1f}} ms more per round, speed-up "
        "%{customdata[1]}<br>%{customdata[2]}<extra></extra>",
    }


def _standing(step: Marginal) -> str:
    return ("pays" if step.pays else "does not pay") + (", extrapolated" if step.is_extrapolated else "")
