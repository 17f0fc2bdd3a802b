"""Acceptance by position in the block."""

from __future__ import annotations

from typing import Any

from specviz.record.state import RunState
from specviz.views import words
from specviz.views.figures.frame import Chart, axis, label, layout, show_not_known
from specviz.views.palette import LOOKS

#: Up to this many bars have room for a number each.
_LABELLED = 6


def position_bars(state: RunState) -> Chart:
    """Accepted / reached at each position: of the drafts that reached it, not of all rounds."""
    count = max(_drafted(state), len(state.proposed))
    reached, kept = (_padded(counts, count) for counts in (state.reached, state.kept))
    shares = [round(100 * k / n, 2) if n else None for k, n in zip(kept, reached, strict=True)]
    names = list(range(1, count + 1))
    bars = {
        "type": "bar",
        "x": names,
        "y": shares,
        "customdata": [[k, n] for k, n in zip(kept, reached, strict=True)],
        "marker": {"color": LOOKS["accepted"].colour},
        "hovertemplate": "position %{x}: %{y:.0f} %<br>%{customdata[0]} accepted of the "
        "%{customdata[1]}<br>drafts that reached it<extra></extra>",
    }
    drawn = layout(150, (34, 10, 10, 46))
    drawn["bargap"] = 0.3
    drawn["xaxis"] = axis(_x_title(count), _ticks(names, reached))
    drawn["yaxis"] = axis("", {"range": [0, 118], "tickvals": [0, 50, 100]})
    drawn["annotations"] = _labels(names, shares)
    note = "accepted of the drafts that reached it"
    if not any(reached):
        note = "no draft was tested yet"
        show_not_known(drawn)
    return Chart("Acceptance by position, %", note, _in_words(shares, kept, reached) or note, [bars], drawn)


def _drafted(state: RunState) -> int:
    k = state.started.settings.get("k") if state.started else None
    return k if isinstance(k, int) and 0 < k <= 64 else 0


def _padded(counts: list[int], count: int) -> list[int]:
    return counts + [0] * (count - len(counts))


def _x_title(count: int) -> str:
    return "position in the block, drafts that reached it" if count <= _LABELLED else "position in the block"


def _ticks(names: list[int], reached: list[int]) -> dict[str, Any]:
    if len(names) > _LABELLED:
        return {"showgrid": False, "nticks": 8}
    ticks = [f"{name}<br>{_short(n)}" for name, n in zip(names, reached, strict=True)]
    return {"showgrid": False, "tickvals": names, "ticktext": ticks}


def _short(count: int) -> str:
    return f"{count:,}" if count < 10_000 else f"{count / 1000:,.0f}k"


def _labels(names: list[int], shares: list[float | None]) -> list[dict[str, Any]]:
    """The number over each bar, if there is room; "n/a" at a position that no draft reached, always."""
    few = len(names) <= _LABELLED
    return [
        label(words.NOT_KNOWN if share is None else f"{share:.0f}", name, (share or 0) + 9, size=11 if few else 9)
        for name, share in zip(names, shares, strict=True)
        if few or share is None
    ]


def _in_words(shares: list[float | None], kept: list[int], reached: list[int]) -> str:
    if not any(reached):
        return ""
    return "; ".join(
        f"position {i}: n/a, no draft reached it" if share is None else f"position {i}: {share:.0f} %, {k:,} of {n:,}"
        for i, (share, k, n) in enumerate(zip(shares, kept, reached, strict=True), 1)
    )
