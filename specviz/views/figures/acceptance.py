"""The acceptance rate as a gauge: the bar is the whole run, the needle the last rounds."""

from __future__ import annotations

from typing import Any

from specviz.core.tally import WINDOW
from specviz.record.state import RunState
from specviz.views import words
from specviz.views.figures.frame import TEXT, Chart, label, layout
from specviz.views.palette import BAD, GOOD, MIDDLING, NEUTRAL


def acceptance_band(rate: float | None) -> tuple[str, str]:
    """Colour and word for an acceptance rate: low below 50 %, middling to 75 %, high above."""
    if rate is None:
        return NEUTRAL, "nothing tested yet"
    if rate < 0.5:
        return BAD, "low"
    return (MIDDLING, "middling") if rate <= 0.75 else (GOOD, "high")


def acceptance_gauge(state: RunState) -> Chart:
    """Accepted / tested over the whole run and over the last rounds; n/a while nothing was tested."""
    latest = state.latest
    overall = latest.overall_acceptance_rate if latest else None
    rolling = latest.acceptance_rate if latest else None
    colour, word = acceptance_band(overall)
    counts = word
    if overall is not None:
        counts = f"{state.sums.accepted:,} of {state.sums.tested:,} tested: {word}"
    last = min(WINDOW, len(state.rounds))
    recent = f"{words.percent(rolling)} in the last {f'{last} rounds' if last > 1 else 'round'}"
    drawn = layout(156, (30, 34, 24, 26))
    drawn["annotations"] = [
        _on_paper(f"<b>{words.percent(overall)}</b>" if overall is not None else words.NOT_KNOWN, 0.17, 28),
    ]
    if rolling is not None:
        drawn["annotations"].append(_on_paper(f"<b>┃</b> {recent}", -0.13, 12))
    listed = counts if overall is None else f"{words.percent(overall)}, {counts}; {recent}"
    return Chart("Acceptance rate, %", counts, listed, [_gauge(overall, rolling, colour)], drawn)


def _gauge(overall: float | None, rolling: float | None, colour: str) -> dict[str, Any]:
    needle = {"value": _hundredths(rolling), "thickness": 0.95, "line": {"color": TEXT, "width": 3}}
    return {
        "type": "indicator",
        "mode": "gauge",
        "value": _hundredths(overall),
        "gauge": {
            "axis": {"range": [0, 100], "tickvals": [0, 50, 75, 100], "ticksuffix": " %", "tickfont": {"size": 11}},
            "bar": {"color": colour, "thickness": 0.7},
            "bgcolor": "rgba(138,147,163,0.16)",
            "borderwidth": 0,
            **({} if rolling is None else {"threshold": needle}),
        },
    }


def _hundredths(rate: float | None) -> float | None:
    return None if rate is None else round(100 * rate, 2)


def _on_paper(text: str, y: float, size: int) -> dict[str, Any]:
    return {**label(text, 0.5, y, size=size), "xref": "paper", "yref": "paper"}
