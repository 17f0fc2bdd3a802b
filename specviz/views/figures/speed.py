"""Tokens per second with speculation and without."""

from __future__ import annotations

from specviz.record.state import RunState
from specviz.views import words
from specviz.views.figures.frame import Chart, axis, label, layout, plain, show_not_known
from specviz.views.palette import BAD, GOOD, NEUTRAL
from specviz.views.speed import compared, is_remote, speed_word, speeds

SPECULATIVE = "speculative"


def baselines(state: RunState) -> list[tuple[str, float | None]]:
    """The baselines of a run, the slowest kind first: name and tokens per second."""
    speed = speeds(state)
    per_call = ("one call per token", speed.per_call)
    if is_remote(state):
        return [per_call, ("streaming", speed.plain if state.baseline == "streaming" else None)]
    return [*([per_call] if speed.per_call is not None else []), (str(state.baseline), speed.plain)]


def speed_bars(state: RunState) -> Chart:
    """Tokens per second with speculation and without; a bar is missing where its number is not known."""
    speed = speeds(state)
    rows = [*baselines(state), (SPECULATIVE, speed.speculative)]
    slower = speed.speedup is not None and speed_word(speed.speedup) == "slower"
    names = [_wrapped(name) for name, _ in rows]
    values = [None if value is None else round(value, 3) for _, value in rows]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": values,
        "marker": {"color": [NEUTRAL] * (len(rows) - 1) + [BAD if slower else GOOD]},
        "customdata": [*[plain(_target(state))] * (len(rows) - 1), _pair(state)],
        "hovertemplate": "%{y}: %{x:.1f} tokens/s<br>%{customdata}<extra></extra>",
    }
    comparison = compared(speed.speedup, state.baseline)
    drawn = layout(46 + 28 * len(rows), (118, 12, 4, 36))
    longest = max(value or 0.0 for value in values)
    drawn["bargap"] = 0.3
    drawn["xaxis"] = axis("tokens/s", {"range": [0, 1.3 * longest or 1], "showgrid": False, "nticks": 4})
    drawn["yaxis"] = axis("", {"type": "category", "showgrid": False, "ticklabelstandoff": 6})
    # As annotations: Plotly.react does not always redraw a bar's own text.
    drawn["annotations"] = [
        {**label(words.number(value, 1), value or 0, name, size=12, anchor="left"), "xshift": 4}
        for name, value in zip(names, values, strict=True)
    ]
    if not longest:
        show_not_known(drawn)
    note = comparison or ("no comparison yet" if longest else "nothing was measured yet")
    listed = "; ".join(f"{name} {words.number(value, 1)}" for name, value in rows)
    return Chart("Tokens per second", note, f"{listed}; {note}", [bars], drawn, bad=slower)


def _wrapped(name: str) -> str:
    return name.replace(" without ", "<br>without ")


def _target(state: RunState) -> str:
    return state.started.target if state.started else ""


def _pair(state: RunState) -> str:
    return f"{plain(state.started.draft)} → {plain(state.started.target)}" if state.started else ""
