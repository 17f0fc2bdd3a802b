"""Tokens of each round: accepted, resampled, bonus."""

from __future__ import annotations

from specviz.core.events import Metrics
from specviz.record.state import RunState
from specviz.views import words
from specviz.views.figures.frame import (
    NO_ROUND,
    TEXT,
    WINDOW,
    Chart,
    axis,
    bars,
    layout,
    legend,
    over_rounds,
    show_not_known,
)
from specviz.views.palette import LOOKS


def round_bars(state: RunState) -> Chart:
    """Accepted tokens of the last rounds, the resampled or bonus token on top, and the mean of all rounds so far."""
    rounds = state.rounds[-WINDOW:]
    numbers = [m.round + 1 for m in rounds]
    resampled, bonus = ([_added(m) * (_rejected(m) is wanted) for m in rounds] for wanted in (True, False))
    data = [
        bars(numbers, [m.accepted for m in rounds], "accepted", LOOKS["accepted"].colour),
        bars(numbers, resampled, "resampled", LOOKS["resampled"].colour),
        bars(numbers, bonus, "bonus", LOOKS["bonus"].colour),
        {
            "type": "scatter",
            "mode": "lines",
            "x": numbers,
            "y": [round(m.tokens_per_round, 4) for m in rounds],
            "name": "mean so far",
            "line": {"color": TEXT, "width": 2},
            "hovertemplate": "mean of rounds 1 to %{x}: %{y:.2f} tokens<extra></extra>",
        },
    ]
    latest = state.latest
    mean = words.number(latest.tokens_per_round if latest else None)
    drawn = layout(220, (34, 10, 10, 74))
    drawn |= {"barmode": "stack", "bargap": 0.15, "showlegend": True, "legend": legend(-0.27)}
    drawn["xaxis"] = over_rounds(numbers)
    most = max((m.emitted for m in rounds), default=0)
    drawn["yaxis"] = axis("", {"rangemode": "tozero", "dtick": max(1, -(-most // 5))})
    if not rounds:
        show_not_known(drawn)
        return Chart("Tokens per round", NO_ROUND, NO_ROUND, data, drawn)
    note = f"mean of all rounds: {mean}"
    sums = f"{state.sums.accepted:,} accepted of {state.sums.emitted:,} tokens in {len(state.rounds):,} rounds"
    return Chart("Tokens per round", note, f"{note}; {sums}", data, drawn)


def _added(m: Metrics) -> int:
    return m.emitted - m.accepted


def _rejected(m: Metrics) -> bool:
    return m.tested > m.accepted
