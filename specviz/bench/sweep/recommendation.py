"""The result of a sweep in a sentence: the best cell with its margin, or that nothing is faster than plain decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specviz.bench.sweep.rows import BenchRow, baseline_of


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What follows from a sweep.

    Attributes:
        speculate: whether some cell is faster than the baseline beyond chance; None where that is not known.
        best: the fastest cell that was measured; None if there is none.
        words: the sentence.
    """

    speculate: bool | None
    best: BenchRow | None
    words: str


def verdict(rows: Sequence[BenchRow], temperature: float) -> Recommendation:
    """The result of the rows at one temperature."""
    found = sorted(
        (r for r in rows if r.cell.temperature == temperature and not r.cell.baseline and r.speedup),
        key=lambda r: -(r.speedup or 0.0),
    )
    if not found:
        return Recommendation(None, None, "Nothing was compared yet.")
    best = found[0]
    plain = baseline_of(rows, temperature)
    other = (plain.cell.baseline if plain else None) or "the baseline"
    name = f"{best.cell.draft} with K = {best.cell.k}" + _rule(best, found)
    speed = _speed(best, other)
    if (best.speedup or 0.0) <= 1:
        return Recommendation(False, best, f"Do not speculate here: the best, {name}, is {speed}.")
    interval = best.speedup_interval
    if interval is None:
        return Recommendation(
            None, best, f"{name}: {speed}, on a single prompt. More prompts would show whether that holds."
        )
    if interval.low <= 1:
        words = f"No gain beyond chance: the best, {name}, is {speed}, and its interval reaches below 1."
        return Recommendation(None, best, words)
    return Recommendation(True, best, f"{name}: {speed}.{_margin(found)}")


def _rule(best: BenchRow, found: Sequence[BenchRow]) -> str:
    return f" ({best.cell.rule})" if len({r.cell.rule for r in found}) > 1 else ""


def _speed(row: BenchRow, other: str) -> str:
    interval = row.speedup_interval
    within = f" [{interval.low:.2f} to {interval.high:.2f}]" if interval else ""
    return f"{row.speedup:.2f} ×{within} {other}"


def _margin(found: Sequence[BenchRow]) -> str:
    if len(found) < 2:
        return ""
    best, second = found[0], found[1]
    gain = 100 * ((best.speedup or 0.0) / (second.speedup or 1.0) - 1)
    name = f"{second.cell.draft} with K = {second.cell.k}" + _rule(second, found)
    if gain < 0.5:
        return f" {name} is as fast."
    ours, theirs = best.speedup_interval, second.speedup_interval
    if ours and theirs and ours.overlaps(theirs):
        return f" {name} is next, {gain:.0f} % behind: their intervals overlap, so either may be the faster one."
    return f" {name} is next, {gain:.0f} % behind."
