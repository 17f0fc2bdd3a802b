"""Tokens per second by round, with the measured baselines."""

from __future__ import annotations

from typing import Any

from specviz.core.events import Metrics
from specviz.record.state import RunState
from specviz.views import words
from specviz.views.figures.frame import NO_ROUND, TEXT, WINDOW, Chart, axis, layout, legend, over_rounds, show_not_known
from specviz.views.figures.speed import baselines
from specviz.views.palette import LOOKS, NEUTRAL

_DASHES = ("dot", "dash")


def speed_lines(state: RunState) -> Chart:
    """Each of the last rounds as a dot, the rate so far as a line, the baselines as dashed lines.

    Without the first round, which reads the prompt and is in no rate.
    """
    rounds = [m for m in state.rounds[-WINDOW:] if m.round > 0]
    numbers = [m.round + 1 for m in rounds]
    known = [(name, tps) for name, tps in baselines(state) if tps is not None]
    data = [
        *(_level(numbers, name, tps, dash) for (name, tps), dash in zip(known, _DASHES[-len(known) :], strict=False)),
        {
            "type": "scatter",
            "mode": "markers",
            "x": numbers,
            "y": [_of_round(m) for m in rounds],
            "name": "each round",
            "marker": {"color": LOOKS["bonus"].colour, "size": 5, "opacity": 0.7},
            "hovertemplate": "round %{x}: %{y:.1f} tokens/s<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "x": numbers,
            "y": [_rounded(m.effective_tps) for m in rounds],
            "name": "so far",
            "line": {"color": TEXT, "width": 2},
            "hovertemplate": "rounds 2 to %{x}: %{y:.1f} tokens/s<extra></extra>",
        },
    ]
    drawn = layout(220, (40, 10, 10, 74))
    drawn |= {"showlegend": True, "legend": legend(-0.27)}
    drawn["xaxis"] = over_rounds(numbers)
    drawn["yaxis"] = axis("", {"rangemode": "tozero", "nticks": 5})
    title, note = "Tokens per second, by round", "without the first round, which reads the prompt"
    if not rounds:
        show_not_known(drawn)
        return Chart(title, note, NO_ROUND, data, drawn)
    listed = "; ".join(f"{name} {words.number(tps, 1)}" for name, tps in known) or "no baseline"
    return Chart(title, note, f"so far {words.number(rounds[-1].effective_tps, 1)}; {listed}", data, drawn)


def _level(numbers: list[int], name: str, tps: float, dash: str) -> dict[str, Any]:
    ends = [numbers[0] - 0.5, numbers[-1] + 0.5] if numbers else []
    return {
        "type": "scatter",
        "mode": "lines",
        "x": ends,
        "y": [_rounded(tps)] * len(ends),
        "name": name,
        "line": {"color": NEUTRAL, "width": 2, "dash": dash},
        "hovertemplate": f"{name}: %{{y:.1f}} tokens/s<extra></extra>",
    }


def _of_round(m: Metrics) -> float | None:
    return round(1000 * m.emitted / m.split.wall_ms, 3) if m.split.wall_ms > 0 else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
