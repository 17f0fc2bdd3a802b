"""The rows of a benchmark as a table of texts; n/a where a figure is not known."""

from __future__ import annotations

from collections.abc import Sequence

from specviz.bench.statistics import Interval
from specviz.bench.sweep.rows import BenchRow
from specviz.views import words

Record = dict[str, str]


def records(rows: Sequence[BenchRow], runs_per_cell: int) -> list[Record]:
    """One record per cell: baselines first, then by falling speed-up. Incomplete cells show how many runs they have.

    Args:
        runs_per_cell: how many runs make a cell complete.
    """
    plain = [r for r in rows if r.cell.baseline]
    others = sorted((r for r in rows if not r.cell.baseline), key=lambda r: -(r.speedup or 0.0))
    return [_record(row, runs_per_cell) for row in (*plain, *others)]


def _record(row: BenchRow, runs: int) -> Record:
    cell = row.cell
    return {
        "Draft": words.visible(cell.baseline or cell.draft),
        "K": "" if cell.baseline else str(cell.k),
        "T": f"{cell.temperature:g}",
        "Rule": "" if cell.baseline else cell.rule,
        "Speed-up": "" if cell.baseline and row.speedup is None else words.number(row.speedup, 3),
        "95 %": "" if cell.baseline else _interval(row.speedup_interval),
        "Tokens/s": words.number(row.tokens_per_second, 2),
        "Acceptance": "" if cell.baseline else words.number(row.acceptance, 3),
        "Accepted/round": "" if cell.baseline else words.number(row.accepted_per_round, 3),
        "Tokens/round": "" if cell.baseline else words.number(row.tokens_per_round, 3),
        "Tokens/round, by prompt": "" if cell.baseline else words.number(row.tokens_per_round_by_prompt, 3),
        "Draft ms/round": "" if cell.baseline else _per_round(row),
        "Billed": words.number(_billed(row), 0),
        "Runs": _runs(row, runs),
        "Promise": row.guarantee or words.NOT_KNOWN,
    }


def _interval(interval: Interval | None) -> str:
    return words.NOT_KNOWN if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"


def _per_round(row: BenchRow) -> str:
    return words.number(row.split.draft_ms / row.rounds if row.rounds else None, 1)


def _billed(row: BenchRow) -> float | None:
    known = [n for n in (row.billed_prompt, row.billed_completion) if n is not None]
    return float(sum(known)) if known else None


def _runs(row: BenchRow, runs: int) -> str:
    if row.failure:
        return "failed"
    return f"{row.trials} of {runs}" if row.trials < runs else str(row.trials)


def duration(seconds: float | None) -> str:
    """A time in hours, minutes and seconds; n/a where it is not known."""
    if seconds is None:
        return words.NOT_KNOWN
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
