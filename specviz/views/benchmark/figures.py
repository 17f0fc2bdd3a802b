"""The charts of a benchmark: a map of speed-ups, bars with intervals, acceptance by position and by domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specviz.bench.sweep.rows import BenchRow
from specviz.views import words
from specviz.views.figures.frame import Chart, axis, label, layout, legend, line_at_one, plain, show_not_known
from specviz.views.palette import BAD, GOOD, NEUTRAL

#: From slower to faster than plain decoding: Okabe-Ito colours, light enough for dark text.
_SLOWER, _EVEN, _FASTER = "#E8A173", "#F4F4F2", "#7FB8DE"
_ON_COLOUR = "#1A1A1A"
#: Colour and marker of each draft, in the order of the plan.
_LINES = (
    ("#0072B2", "circle"), ("#E69F00", "diamond"), ("#009E73", "square"), ("#CC79A7", "triangle-up"),
    ("#56B4E9", "star"), ("#7E6BB5", "x"),
)  # fmt: skip
_MOST_BARS = 12
#: A position that fewer drafts reached is drawn hollow.
_FEW = 10
NOTHING = "nothing was measured yet"


def speculative(rows: Sequence[BenchRow], temperature: float, rule: str) -> list[BenchRow]:
    """The rows with a draft at this temperature and rule that have at least one run."""
    return [
        r for r in rows if not r.cell.baseline and r.trials and (r.cell.temperature, r.cell.rule) == (temperature, rule)
    ]


def speed_map(rows: Sequence[BenchRow]) -> Chart:
    """Speed-up of every draft at every K; a cell that is not measured is empty."""
    drafts, ks = list(dict.fromkeys(r.cell.draft for r in rows)), sorted({r.cell.k for r in rows})
    speedups = {(r.cell.draft, r.cell.k): r.speedup for r in rows}
    values = [[speedups.get((d, k)) for k in ks] for d in drafts]
    known = [v for v in speedups.values() if v is not None]
    title, drawn = "Speed-up, draft × K", layout(90 + 44 * max(1, len(drafts)), (150, 10, 6, 44))
    drawn["xaxis"] = axis("K", {"type": "category", "showgrid": False})
    drawn["yaxis"] = axis("", {"type": "category", "showgrid": False, "autorange": "reversed", "ticklabelstandoff": 6})
    if not known:
        show_not_known(drawn)
        return Chart(title, NOTHING, NOTHING, [], drawn)
    far = max(0.05, *(abs(v - 1) for v in known))
    data = {
        "type": "heatmap",
        "x": [str(k) for k in ks],
        "y": [_name(d) for d in drafts],
        "z": values,
        "zmin": 1 - far,
        "zmax": 1 + far,
        "colorscale": [[0, _SLOWER], [0.5, _EVEN], [1, _FASTER]],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hovertemplate": "%{y}, K = %{x}: %{z:.2f} ×<extra></extra>",
    }
    # As annotations: Plotly.react does not always redraw a cell's own text. Bold above 1: colour is not the only cue.
    drawn["annotations"] = [
        # By index: a K as text would be read as a value on the axis.
        label(f"<b>{v:.2f}</b>" if v > 1 else f"{v:.2f}", at, row, size=12)
        | {"font": {"size": 12, "color": _ON_COLOUR}}
        for row, d in enumerate(drafts)
        for at, k in enumerate(ks)
        if (v := speedups.get((d, k))) is not None
    ]
    best = max((r for r in rows if r.speedup is not None), key=lambda r: r.speedup or 0.0)
    note = f"best: {_name(best.cell.draft)}, K = {best.cell.k}, {words.number(best.speedup, 2)} ×"
    listed = "; ".join(f"{_name(r.cell.draft)}, K {r.cell.k}: {words.number(r.speedup, 2)}" for r in rows)
    return Chart(title, note, f"{listed}; {note}", [data], drawn, bad=(best.speedup or 0.0) <= 1)


def speed_bars(rows: Sequence[BenchRow], plain_name: str) -> Chart:
    """The fastest cells with their 95 % intervals, and a line at plain decoding."""
    ranked = sorted((r for r in rows if r.speedup is not None), key=lambda r: r.speedup or 0.0)[-_MOST_BARS:]
    title, drawn = (
        f"Speed-up against {plain_name}, 95 % interval",
        layout(60 + 26 * max(2, len(ranked)), (190, 16, 6, 40)),
    )
    drawn["bargap"] = 0.35
    drawn["yaxis"] = axis("", {"type": "category", "showgrid": False, "ticklabelstandoff": 6})
    if not ranked:
        drawn["xaxis"] = axis("×")
        show_not_known(drawn)
        return Chart(title, NOTHING, NOTHING, [], drawn)
    names = [_cell(r) for r in ranked]
    values = [round(r.speedup or 0.0, 4) for r in ranked]
    over = [round(r.speedup_interval.high - (r.speedup or 0.0), 4) if r.speedup_interval else 0 for r in ranked]
    under = [round((r.speedup or 0.0) - r.speedup_interval.low, 4) if r.speedup_interval else 0 for r in ranked]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": values,
        "marker": {"color": [_judged(r) for r in ranked]},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": over,
            "arrayminus": under,
            "color": "@text",
            "thickness": 1.2,
            "width": 4,
        },
        "hovertemplate": "%{y}: %{x:.2f} ×<extra></extra>",
    }
    reach = max(v + o for v, o in zip(values, over, strict=True))
    drawn["xaxis"] = axis("×", {"range": [0, max(1.15, 1.08 * reach)], "nticks": 6})
    drawn["shapes"] = [line_at_one("x")]
    note = f"green: interval above 1; grey: contains 1; red: below 1. {len(ranked)} of {len(rows)} cells"
    listed = "; ".join(f"{_cell(r)} {words.number(r.speedup, 2)}{_within(r)}" for r in reversed(ranked))
    return Chart(title, note, listed, [bars], drawn)


def positions(rows: Sequence[BenchRow]) -> Chart:
    """Acceptance by position of each draft at its largest K: accepted of the drafts that reached the position."""
    longest = _largest_k(rows)
    title, drawn = "Acceptance by position, %", layout(250, (44, 10, 8, 78))
    drawn |= {"showlegend": True, "legend": legend(-0.3)}
    drawn["yaxis"] = axis("", {"range": [0, 105], "nticks": 5})
    most = max((len(r.reached) for r in longest), default=1)
    drawn["xaxis"] = axis("position in the block", {"range": [0.5, most + 0.5], "dtick": 1, "showgrid": False})
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": _name(r.cell.draft),
            "x": list(range(1, len(r.reached) + 1)),
            "y": [None if v is None else round(100 * v, 2) for v in r.by_position],
            "customdata": [[k, n] for k, n in zip(r.kept, r.reached, strict=True)],
            "line": {"color": colour, "width": 2},
            "marker": {"symbol": [symbol if n >= _FEW else f"{symbol}-open" for n in r.reached], "size": 8},
            "hovertemplate": "position %{x}: %{y:.0f} % (%{customdata[0]} of %{customdata[1]})"
            "<extra>%{fullData.name}</extra>",
        }
        for r, (colour, symbol) in zip(longest, _styles(len(longest)), strict=True)
    ]
    if not any(r.reached for r in longest):
        show_not_known(drawn)
        return Chart(title, NOTHING, NOTHING, [], drawn)
    listed = "; ".join(f"{_name(r.cell.draft)}: " + ", ".join(map(words.percent, r.by_position)) for r in longest)
    few = f"; hollow: fewer than {_FEW} did" if any(n < _FEW for r in longest for n in r.reached) else ""
    return Chart(title, "of the drafts that reached the position, at the largest K" + few, listed, data, drawn)


def domains(rows: Sequence[BenchRow]) -> Chart:
    """Speed-up in each domain of the suite, of each draft's best cell."""
    best = _best(rows)
    names = list(dict.fromkeys(name for r in best for name in r.domains))
    title, drawn = "Speed-up by domain, each draft's best K", layout(270, (40, 10, 8, 96))
    drawn |= {"showlegend": True, "legend": legend(-0.36), "barmode": "group", "bargap": 0.25}
    drawn["xaxis"] = axis("", {"type": "category", "showgrid": False})
    drawn["yaxis"] = axis("×", {"rangemode": "tozero", "nticks": 5})
    drawn["shapes"] = [line_at_one("y")]
    data = [_domain_bars(r, names, colour) for r, (colour, _) in zip(best, _styles(len(best)), strict=True)]
    if not any(d.speedup is not None for r in best for d in r.domains.values()):
        drawn.pop("shapes")
        show_not_known(drawn)
        return Chart(title, NOTHING, NOTHING, [], drawn)
    listed = "; ".join(
        f"{_cell(r)}: " + ", ".join(f"{plain(n)} {words.number(d.speedup, 2)}" for n, d in r.domains.items())
        for r in best
    )
    return Chart(title, "dotted: plain decoding", listed, data, drawn)


def _domain_bars(row: BenchRow, names: Sequence[str], colour: str) -> dict[str, Any]:
    found = [row.domains.get(name) for name in names]
    return {
        "type": "bar",
        "name": _cell(row),
        "x": [plain(name) for name in names],
        "y": [None if d is None or d.speedup is None else round(d.speedup, 3) for d in found],
        "customdata": [0 if d is None else d.prompts for d in found],
        "marker": {"color": colour},
        "hovertemplate": "%{x}: %{y:.2f} × on %{customdata} prompts<extra>%{fullData.name}</extra>",
    }


def _judged(row: BenchRow) -> str:
    interval = row.speedup_interval
    if interval is None or interval.low <= 1 <= interval.high:
        return NEUTRAL
    return GOOD if interval.low > 1 else BAD


def _largest_k(rows: Sequence[BenchRow]) -> list[BenchRow]:
    found: dict[str, BenchRow] = {}
    for row in rows:
        if row.cell.draft not in found or row.cell.k > found[row.cell.draft].cell.k:
            found[row.cell.draft] = row
    return list(found.values())


def _best(rows: Sequence[BenchRow]) -> list[BenchRow]:
    found: dict[str, BenchRow] = {}
    for row in rows:
        if row.cell.draft not in found or (row.speedup or 0.0) > (found[row.cell.draft].speedup or 0.0):
            found[row.cell.draft] = row
    return list(found.values())


def _styles(count: int) -> list[tuple[str, str]]:
    return [_LINES[i % len(_LINES)] for i in range(count)]


def _name(draft: str) -> str:
    return plain(draft, 26)


def _cell(row: BenchRow) -> str:
    return f"{_name(row.cell.draft)}, K {row.cell.k}"


def _within(row: BenchRow) -> str:
    interval = row.speedup_interval
    return f" ({interval.low:.2f} to {interval.high:.2f})" if interval else ""
