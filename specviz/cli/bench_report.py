"""A benchmark as text and as one JSON object, as `specviz bench` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specviz.bench.statistics import Interval
from specviz.bench.sweep.alarms import alarms
from specviz.bench.sweep.compare import Change, Comparison
from specviz.bench.sweep.plan import Cell
from specviz.bench.sweep.recommendation import verdict
from specviz.bench.sweep.results import Bench
from specviz.bench.sweep.rows import BenchRow, rows_of
from specviz.cli.terminal import columns

_HEADS = (
    "CELL", "K", "T", "ACCEPTED/TESTED", "ACCEPTED/ROUND", "TOKENS/ROUND", "BY PROMPT", "TOKENS/S", "BY PROMPT",
    "SPEED-UP", "95 %",
)  # fmt: skip


def summary(bench: Bench) -> dict[str, Any]:
    """Plan, rows and verdicts; the single runs are in the file."""
    rows = rows_of(bench)
    return {
        "plan": bench.plan.to_json(),
        "machine": bench.machine,
        "seconds": bench.seconds,
        "verdict": {f"{t:g}": verdict(rows, t).words for t in bench.plan.temperatures},
        "failures": [f"{bench.plan.cells()[f.cell].name}: {f.message}" for f in bench.failures],
        "alarms": alarms(bench),
        "left_out": {bench.prompts[i].id: why for i, why in bench.left_out.items()},
        "rows": [row.to_json() for row in rows],
    }


def text(bench: Bench) -> str:
    """A table, remarks, and the verdict at each temperature."""
    rows = rows_of(bench)
    lines = [columns([_HEADS, *map(_cells, rows)]), ""]
    lines += [f"{p}: {why}" for p, why in ((bench.prompts[i].id, why) for i, why in bench.left_out.items())]
    lines += [f"Not measured: {bench.plan.cells()[f.cell].name}: {f.message} {f.remedy}" for f in bench.failures]
    lines += [remark for row in rows if (remark := _differs(row))]
    lines += [f"Doubtful: {alarm}" for alarm in alarms(bench)]
    if bench.missing:
        lines.append(f"{bench.missing:,} of {bench.total:,} runs are still to be measured.")
    for temperature in bench.plan.temperatures:
        lines.append(f"T = {temperature:g}: {verdict(rows, temperature).words}")
    return "\n".join(lines)


def _cells(row: BenchRow) -> tuple[str, ...]:
    cell = row.cell
    name = cell.baseline or cell.draft + ("" if cell.rule == "probabilistic" else f" {cell.rule}")
    speculative = cell.baseline is None
    return (
        name,
        str(cell.k) if speculative else "",
        f"{cell.temperature:g}",
        number(row.acceptance) if speculative else "",
        number(row.accepted_per_round) if speculative else "",
        number(row.tokens_per_round) if speculative else "",
        number(row.tokens_per_round_by_prompt) if speculative else "",
        number(row.tokens_per_second, 2),
        number(row.tokens_per_second_by_prompt, 2),
        number(row.speedup) if row.speedup is not None or speculative else "",
        within(row.speedup_interval) if speculative else "",
    )


def number(value: float | None, digits: int = 3) -> str:
    """A figure, or n/a: an unknown figure must not look like 0."""
    return "n/a" if value is None else f"{value:.{digits}f}"


def within(interval: Interval | None) -> str:
    """The two ends of an interval, or n/a."""
    return "n/a" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"


def _differs(row: BenchRow) -> str:
    """A remark where greedy text is not that of plain decoding: a near-tie between kernels, or a fault."""
    if row.same_text is None or row.same_text[0] == row.same_text[1]:
        return ""
    same, of = row.same_text
    return f"{row.cell.name}: {of - same} of {of} texts are not those of plain decoding (near-ties between kernels?)"


def comparison(found: Comparison) -> str:
    """The cells that both have, and what else differs."""
    heads = ("CELL", "SPEED-UP", "THEN", "BEYOND CHANCE", "TOKENS/ROUND", "THEN", "BEYOND CHANCE")
    body = [(p.cell.name, *_change(p.speedup), *_change(p.tokens_per_round)) for p in found.pairings]
    lines = [columns([heads, *body])] if body else ["The two have no cell in common."]
    lines += ["", *(f"Not the same: {difference}" for difference in found.differences)] if found.differences else []
    lines += [*_alone("Only in the first", found.only_before), *_alone("Only in the second", found.only_after)]
    return "\n".join(lines)


def _change(change: Change) -> tuple[str, str, str]:
    beyond = "n/a" if change.beyond_chance is None else "yes" if change.beyond_chance else "no"
    return number(change.before), number(change.after), beyond


def _alone(where: str, cells: Sequence[Cell]) -> list[str]:
    return [f"{where}: {cell.name}" for cell in cells]
