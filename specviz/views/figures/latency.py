"""The parts of the time of the last rounds."""

from __future__ import annotations

from specviz.core.events import TimeSplit
from specviz.record.state import RunState
from specviz.views import words
from specviz.views.figures.frame import NO_ROUND, Chart, axis, layout, legend, show_not_known
from specviz.views.palette import TIME_COLOURS
from specviz.views.speed import is_simulated

LAST_ROUNDS = 10
#: Short names for the legend, so that two fit beside each other.
_SHORT = {"call": "server call"}


def latency_bars(state: RunState) -> Chart:
    """The parts of the last rounds' wall time, stacked, in ms."""
    rounds = state.rounds[-LAST_ROUNDS:]
    splits = [m.split for m in rounds]
    parts = _parts(splits)
    names = {part: words.part(part, simulated=is_simulated(state)) for part in parts}
    data = [
        {
            "type": "bar",
            "x": [str(m.round + 1) for m in rounds],
            "y": [None if v is None else round(v, 3) for v in values],
            "name": _SHORT.get(part, names[part]),
            "marker": {"color": TIME_COLOURS[part]},
            "hovertemplate": f"round %{{x}}, {names[part]}: %{{y:.1f}} ms<extra></extra>",
        }
        for part, values in parts.items()
    ]
    drawn = layout(220, (40, 10, 10, 74))
    drawn |= {"barmode": "stack", "bargap": 0.3, "showlegend": True, "legend": legend(-0.27)}
    drawn["xaxis"] = axis("round", {"type": "category", "showgrid": False})
    drawn["yaxis"] = axis("", {"rangemode": "tozero", "nticks": 5})
    title = f"Time per round, ms, last {LAST_ROUNDS} rounds"
    if not rounds:
        show_not_known(drawn)
        return Chart(title, NO_ROUND, NO_ROUND, data, drawn)
    mean = words.number(sum(s.wall_ms for s in splits) / len(splits), 1, "ms")
    means = {part: sum(v or 0.0 for v in values) / len(values) for part, values in parts.items()}
    listed = "; ".join(f"{names[part]} {words.number(ms, 1, 'ms')}" for part, ms in means.items())
    return Chart(title, f"mean {mean}", f"mean {mean}: {listed}", data, drawn)


def _parts(splits: list[TimeSplit]) -> dict[str, list[float | None]]:
    """The parts to stack, per round. A part that no round knows is left out of the legend: it would read as 0."""
    parts: dict[str, list[float | None]] = {
        "draft": [s.draft_ms for s in splits],
        "network": [s.network_ms for s in splits],
        "waiting": [s.queue_ms for s in splits],
        "target": [s.target_ms for s in splits],
        "call": [s.call_ms for s in splits],
        "rule": [s.rule_ms for s in splits],
        "other": [s.other_ms for s in splits],
    }
    only_if_any = ("waiting", "call")
    return {
        part: values
        for part, values in parts.items()
        if not splits or any(v is not None for v in values) and (part not in only_if_any or any(values))
    }
