"""From a saved benchmark to what planning needs: the rows of one draft at several K together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from specviz.bench.measured import Measured, VerifyCurve, target_ms
from specviz.bench.results import Bench
from specviz.bench.rows import Row, baseline_of, rows_of
from specviz.events import Way
from specviz.metrics import Baseline

_PER_CALL: Baseline = "one call per token"


def from_bench(bench: Bench) -> list[Measured]:
    """One per draft, temperature and rule whose rows and baseline are measured, in the order of the plan.

    Acceptance is that of the row with the largest K; the time of a call by its length comes from all of them.
    """
    rows = rows_of(bench)
    groups: dict[tuple[str, float, str], list[Row]] = defaultdict(list)
    for row in rows:
        if not row.cell.baseline and row.rounds > row.trials and row.drafted and any(row.reached):
            groups[row.cell.draft, row.cell.temperature, row.cell.rule].append(row)
    found = (_measured(bench, rows, group) for group in groups.values())
    return [one for one in found if one is not None]


def _measured(bench: Bench, rows: Sequence[Row], group: Sequence[Row]) -> Measured | None:
    widest = max(group, key=lambda r: r.cell.k)
    cell, plain = widest.cell, baseline_of(rows, widest.cell.temperature)
    if plain is None or not plain.tokens_per_second:
        return None
    plain_ms = 1000 / plain.tokens_per_second
    simulated = bench.plan.settings.simulated_rtt_ms
    calls = None if simulated else _per_call_ms(rows, cell.temperature)
    other_ms = max(0.0, sum(r.split.rule_ms + r.split.other_ms for r in group) / sum(map(_steady, group)))
    none_ms = max(0.0, (calls or plain_ms) - other_ms)
    holds_way = any(r.split.call_ms > 0 for r in group)
    return Measured(
        source=f"{cell.draft}, {cell.rule}, T = {cell.temperature:g} → {bench.plan.settings.target}",
        rounds=widest.rounds,
        kept=_padded(widest.kept, len(widest.proposed)),
        proposed=widest.proposed,
        alpha=widest.acceptance or 0.0,
        plain_ms=plain_ms,
        draft_ms=sum(r.split.draft_ms for r in group) / sum(_steady(r) * r.drafted / r.rounds for r in group),
        verify=VerifyCurve.of(
            [(0.0, none_ms), *((r.drafted / r.rounds, target_ms(r.split) / _steady(r)) for r in group)]
        ),
        other_ms=other_ms,
        per_call_ms=calls,
        rtt_ms=simulated,
        holds_way=holds_way,
        way=_way(bench) if holds_way else "rows",
        output_tokens=round(widest.tokens / widest.trials),
    )


def _steady(row: Row) -> int:
    """Rounds behind the first of each run: the split is of those alone."""
    return row.rounds - row.trials


def _per_call_ms(rows: Sequence[Row], temperature: float) -> float | None:
    found = (r for r in rows if r.cell.baseline == _PER_CALL and r.cell.temperature == temperature)
    row = next(found, None)
    return 1000 / row.tokens_per_second if row and row.tokens_per_second else None


def _padded(counts: tuple[int, ...], to: int) -> tuple[int, ...]:
    return counts + (0,) * (to - len(counts))


def _way(bench: Bench) -> Way:
    """As it was asked for; which of them "auto" has become is not in the file."""
    asked = bench.plan.settings.verification
    return "scoring" if asked == "auto" else asked
