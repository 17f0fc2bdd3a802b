"""Plotly figures of a run: acceptance gauge, speed against the baseline, where the time of each round went."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from specviz.events import TimeSplit
from specviz.metrics import RunState
from specviz.views import words
from specviz.views.palette import BAD, GOOD, MIDDLING, NEUTRAL, TIME_COLOURS
from specviz.views.speed import is_remote, speeds

LAST_ROUNDS = 10


def acceptance_band(rate: float | None) -> tuple[str, str]:
    """Colour and word for an acceptance rate: low below 50 %, middling to 75 %, high above."""
    if rate is None:
        return NEUTRAL, "nothing tested yet"
    if rate < 0.5:
        return BAD, "low"
    return (MIDDLING, "middling") if rate <= 0.75 else (GOOD, "high")


def acceptance_gauge(state: RunState) -> go.Figure:
    """Accepted / tested over the whole run; n/a, with an empty gauge, while nothing was tested."""
    rate = state.latest.overall_acceptance_rate if state.latest else None
    colour, word = acceptance_band(rate)
    tested, accepted = sum(state.reached), sum(state.kept)
    gauge = go.Indicator(
        mode="gauge",
        value=None if rate is None else 100 * rate,
        gauge={
            "axis": {"range": [0, 100], "tickvals": [0, 50, 75, 100], "ticksuffix": " %", "tickfont": {"size": 11}},
            "bar": {"color": colour, "thickness": 0.75},
            "bgcolor": "rgba(138,147,163,0.16)",
            "borderwidth": 0,
        },
    )
    figure = _figure([gauge], "Acceptance rate", height=205, margin={"l": 34, "r": 40, "t": 52, "b": 8})
    figure.add_annotation(text=words.percent(rate), x=0.5, y=0.24, font={"size": 30}, showarrow=False)
    counts = f"{word}: {accepted:,} of {tested:,} tested" if tested else word
    figure.add_annotation(text=counts, x=0.5, y=-0.06, font={"size": 12}, showarrow=False)
    return figure


def speed_bars(state: RunState) -> go.Figure:
    """Tokens per second with speculation and without; a bar is missing where its number is not known."""
    speed = speeds(state)
    rows = [("plain decoding", speed.plain), ("speculative", speed.speculative)]
    if is_remote(state):
        streamed = speed.plain if state.baseline == "streaming" else None
        rows = [("one call per token", speed.per_call), ("streaming", streamed), ("speculative", speed.speculative)]
    slower = speed.speculative is not None and speed.plain is not None and speed.speculative < speed.plain
    bars = go.Bar(
        y=[name for name, _ in rows],
        x=[value for _, value in rows],
        orientation="h",
        marker={"color": [NEUTRAL] * (len(rows) - 1) + [BAD if slower else GOOD]},
        hovertemplate="%{y}: %{x:.1f} tokens/s<extra></extra>",
    )
    height = 90 + 30 * len(rows)
    figure = _figure([bars], "Tokens per second", height=height, margin={"l": 114, "r": 24, "t": 40, "b": 24})
    longest = max(value or 0.0 for _, value in rows)
    figure.update_xaxes(range=[0, 1.3 * longest or 1], showgrid=False, zeroline=False, nticks=4)
    for name, value in rows:
        if value is not None:
            # As annotations: Plotly.react does not always redraw a bar's own text.
            figure.add_annotation(
                x=value, y=name, text=words.number(value, 1), showarrow=False, xanchor="left", xshift=4
            )
    if not longest:
        _say_not_known(figure)
    return figure


def latency_bars(state: RunState) -> go.Figure:
    """Where the last rounds' wall time went, stacked, in ms."""
    rounds = state.rounds[-LAST_ROUNDS:]
    splits = [m.split for m in rounds]
    bars = [
        go.Bar(
            x=[str(m.round + 1) for m in rounds],
            y=[round(v or 0.0, 3) for v in values],
            name=words.PARTS.get(part, part),
            marker={"color": TIME_COLOURS[part]},
            hovertemplate=f"round %{{x}}, {words.PARTS.get(part, part)}: %{{y:.1f}} ms<extra></extra>",
        )
        for part, values in _parts(splits).items()
    ]
    figure = _figure(bars, "Time per round, ms", height=235, margin={"l": 40, "r": 12, "t": 40, "b": 58})
    figure.update_layout(
        barmode="stack",
        showlegend=True,
        legend={"orientation": "h", "y": -0.2, "x": 0, "font": {"size": 11}, "traceorder": "normal"},
    )
    figure.update_xaxes(type="category")
    figure.update_yaxes(gridcolor="rgba(138,147,163,0.25)", zeroline=False)
    if not rounds:
        _say_not_known(figure)
        figure.update_yaxes(visible=False)
    return figure


def _parts(splits: list[TimeSplit]) -> dict[str, list[float | None]]:
    """The parts to stack, per round. A part that no round knows has no place in the legend: it would read as 0."""
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


def _say_not_known(figure: go.Figure) -> None:
    figure.add_annotation(text=words.NOT_KNOWN, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)
    figure.update_xaxes(visible=False)


def _figure(traces: list[Any], title: str, *, height: int, margin: dict[str, int]) -> go.Figure:
    layout = go.Layout(
        template="none",
        title={"text": title, "font": {"size": 14}, "x": 0.01, "xanchor": "left", "y": 0.97, "yanchor": "top"},
        margin=margin,
        height=height,
        showlegend=False,
        bargap=0.3,
    )
    return go.Figure(traces, layout)
