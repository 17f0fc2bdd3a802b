"""Tokens that a server bills, per round and in total."""

from __future__ import annotations

from itertools import accumulate

from specviz.record.state import RunState
from specviz.views.billing import billed_in_all, billed_parts
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
from specviz.views.palette import LOOKS, TIME_COLOURS
from specviz.views.speed import is_remote


def billed_bars(state: RunState) -> Chart | None:
    """Prompt and output tokens of the last rounds, and the sum so far on an axis of its own; None in-process."""
    if not is_remote(state):
        return None
    rounds = state.rounds[-WINDOW:]
    numbers = [m.round + 1 for m in rounds]
    prompt = [m.billed_prompt_tokens for m in rounds]
    output = [m.billed_completion_tokens for m in rounds]
    total = billed_in_all(state)
    data = [
        bars(numbers, prompt, "prompt", TIME_COLOURS["target"], "tokens"),
        bars(numbers, output, "output", LOOKS["resampled"].colour, "tokens"),
        {
            "type": "scatter",
            "mode": "lines",
            "x": numbers,
            "y": _sums_so_far(total, [m.billed_tokens for m in rounds]),
            "yaxis": "y2",
            "name": "sum (right)",
            "line": {"color": TEXT, "width": 2},
            "hovertemplate": "rounds 1 to %{x}: %{y:,} tokens<extra></extra>",
        },
    ]
    drawn = layout(220, (40, 44, 10, 74))
    drawn |= {"barmode": "stack", "bargap": 0.15, "showlegend": True, "legend": legend(-0.27)}
    drawn["xaxis"] = over_rounds(numbers)
    counts = {"rangemode": "tozero", "nticks": 5, "tickformat": "~s"}
    drawn["yaxis"] = axis("", counts)
    # By default Plotly puts the ticks of a second axis at the heights of those of the first.
    right = {"tickmode": "auto", "overlaying": "y", "side": "right", "showgrid": False, "ticklabelstandoff": 6}
    drawn["yaxis2"] = axis("", counts | right)
    at_least = "at least " if state.sums.unbilled else ""
    note = f"{at_least}{total:,} in total: {billed_parts(state)}" if total is not None else ""
    if total is None:
        note = "not reported by the server" if rounds else NO_ROUND
        show_not_known(drawn)
    return Chart("Billed tokens per round", note, note, data, drawn)


def _sums_so_far(total: int | None, bills: list[int | None]) -> list[int]:
    """The sum after each of the last rounds, computed backwards from the total, so that older rounds are not read."""
    before = (total or 0) - sum(n or 0 for n in bills)
    return list(accumulate((n or 0 for n in bills), initial=before))[1:]
