"""Plotly figures of a run: acceptance gauge, speed against the baseline, where the time of each round went."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from specviz.metrics import RunState
from specviz.views import words
from specviz.views.palette import BAD, GOOD, MIDDLING, NEUTRAL, TIME_COLOURS

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
    with_draft, plain = speeds(state)
    slower = with_draft is not None and plain is not None and with_draft < plain
    bars = go.Bar(
        y=["plain decoding", "speculative"],
        x=[plain, with_draft],
        orientation="h",
        marker={"color": [NEUTRAL, BAD if slower else GOOD]},
        hovertemplate="%{y}: %{x:.1f} tokens/s<extra></extra>",
    )
    figure = _figure([bars], "Tokens per second", height=150, margin={"l": 100, "r": 24, "t": 40, "b": 24})
    longest = max(plain or 0.0, with_draft or 0.0)
    figure.update_xaxes(range=[0, 1.3 * longest or 1], showgrid=False, zeroline=False, nticks=4)
    for name, value in zip(bars.y, bars.x, strict=True):
        if value is not None:
            # As annotations: Plotly.react does not always redraw a bar's own text.
            figure.add_annotation(
                x=value, y=name, text=words.number(value, 1), showarrow=False, xanchor="left", xshift=4
            )
    if with_draft is None and plain is None:
        _say_not_known(figure)
    return figure


def speeds(state: RunState) -> tuple[float | None, float | None]:
    """Tokens per second: of this run, and of the measured baseline."""
    last = state.done
    if last is not None:
        return last.tokens_per_second, last.baseline_tps
    if state.latest is not None:
        return state.latest.effective_tps, state.latest.baseline_tps
    return None, state.started.baseline_tps if state.started else None


def latency_bars(state: RunState) -> go.Figure:
    """Where the last rounds' wall time went, stacked, in ms."""
    rounds = state.rounds[-LAST_ROUNDS:]
    splits = [m.split for m in rounds]
    parts = {
        "draft": [s.draft_ms for s in splits],
        "network": [(s.network_ms or 0.0) + (s.queue_ms or 0.0) for s in splits],
        "target": [s.target_ms or 0.0 for s in splits],
        "call": [s.call_ms for s in splits],
        "rule": [s.rule_ms for s in splits],
        "other": [s.other_ms for s in splits],
    }
    bars = [
        go.Bar(
            x=[str(m.round + 1) for m in rounds],
            y=[round(v, 3) for v in values],
            name=part,
            marker={"color": TIME_COLOURS[part]},
            hovertemplate=f"round %{{x}}, {part}: %{{y:.1f}} ms<extra></extra>",
        )
        for part, values in parts.items()
        if part != "call" or any(values)
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
