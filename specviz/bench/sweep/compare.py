"""Two saved benchmarks side by side: which cells differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from specviz.bench.sweep.plan import Cell
from specviz.bench.sweep.results import NOT_RECORDED, Bench
from specviz.bench.sweep.rows import BenchRow, rows_of

#: Settings that belong to the cell.
_OF_THE_CELL = frozenset({"draft", "k", "temperature", "rule", "min_confidence"})


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one cell in both benchmarks.

    Attributes:
        before, after: None where it is not known.
        beyond_chance: whether the two intervals do not overlap; None where one of them is not known.
    """

    before: float | None
    after: float | None
    beyond_chance: bool | None


@dataclass(frozen=True, slots=True)
class Pairing:
    """A cell that both benchmarks have."""

    cell: Cell
    acceptance: Change
    tokens_per_round: Change
    tokens_per_second: Change
    speedup: Change


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two benchmarks have in common, and where they differ.

    Attributes:
        pairings: the cells that both have. only_before, only_after: cells of only one.
        differences: other differences in words: settings, prompts, machine, versions, what computes the target.
    """

    pairings: tuple[Pairing, ...]
    only_before: tuple[Cell, ...]
    only_after: tuple[Cell, ...]
    differences: tuple[str, ...]


def compare(before: Bench, after: Bench) -> Comparison:
    """Match the cells of two benchmarks."""
    old, new = ({r.cell: r for r in rows_of(bench)} for bench in (before, after))
    return Comparison(
        tuple(_pairing(old[cell], new[cell]) for cell in old if cell in new),
        tuple(cell for cell in old if cell not in new),
        tuple(cell for cell in new if cell not in old),
        tuple(_differences(before, after)),
    )


def _pairing(old: BenchRow, new: BenchRow) -> Pairing:
    names = ("acceptance", "tokens_per_round", "tokens_per_second", "speedup")
    return Pairing(old.cell, **{name: _change(old, new, name) for name in names})


def _change(old: BenchRow, new: BenchRow, name: str) -> Change:
    """The figure of that name in both rows; tokens per second have no interval."""
    one, other = (getattr(row, f"{name}_interval", None) for row in (old, new))
    beyond = None if one is None or other is None else not one.overlaps(other)
    return Change(getattr(old, name), getattr(new, name), beyond)


def _differences(before: Bench, after: Bench) -> list[str]:
    found: list[str] = []
    old, new = before.plan.settings, after.plan.settings
    for f in fields(old):
        one, other = getattr(old, f.name), getattr(new, f.name)
        if f.name not in _OF_THE_CELL and one != other:
            found.append(f"{f.name}: {one!r}, then {other!r}")
    if before.plan.min_confidence != after.plan.min_confidence:
        found.append(f"min confidence: {before.plan.min_confidence}, then {after.plan.min_confidence}")
    found += _prompts(before, after)
    for name in dict.fromkeys((*before.machine, *after.machine)):
        one, other = (bench.machine.get(name, NOT_RECORDED) for bench in (before, after))
        if one != other:
            found.append(f"{name}: {one}, then {other}")
    return found


def _prompts(before: Bench, after: Bench) -> Sequence[str]:
    one, other = ({(*p.before, p.text) for p in bench.prompts} for bench in (before, after))
    if one == other:
        return ()
    return (f"prompts: {len(one)}, then {len(other)}, {len(one & other)} of them the same",)
