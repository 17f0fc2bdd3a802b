"""From a saved benchmark or prediction to what planning needs: the rows of one draft at several K are one source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from specviz.bench.forecast.forecast import SCHEMA, Forecast, Prediction
from specviz.bench.planning.inputs import Measured, padded, target_ms
from specviz.bench.sweep.results import Bench, parsed
from specviz.bench.sweep.rows import BenchRow, baseline_of, rows_of
from specviz.core.cost_model import Floats, VerifyCurve
from specviz.core.errors import SettingsError
from specviz.core.events import Way
from specviz.record.state import Baseline

_PER_CALL: Baseline = "one call per token"


def read(data: bytes) -> list[Measured]:
    """The sources in the file of a benchmark or of a prediction.

    Raises:
        SettingsError: it is neither, it is damaged, or it has no draft that was measured together with plain decoding.
    """
    saved = parsed(data)
    if isinstance(saved, Mapping) and saved.get("schema") == SCHEMA:
        found = from_prediction(Prediction.from_json(saved))
    else:
        found = from_bench(Bench.from_json(saved))
    if not found:
        raise SettingsError("No draft in this file has both tested tokens and a baseline.", "Measure it to the end.")
    return found


def from_bench(bench: Bench) -> list[Measured]:
    """One per draft, temperature and rule whose rows and baseline are measured, in the order of the plan.

    Acceptance is that of the row with the largest K; the time of a call by its length comes from all of them.
    """
    rows = rows_of(bench)
    groups: dict[tuple[str, float, str], list[BenchRow]] = defaultdict(list)
    for row in rows:
        if not row.cell.baseline and row.rounds > row.trials and row.drafted and any(row.reached):
            groups[row.cell.draft, row.cell.temperature, row.cell.rule].append(row)
    found = (_measured(bench, rows, group) for group in groups.values())
    return [one for one in found if one is not None]


def _measured(bench: Bench, rows: Sequence[BenchRow], group: Sequence[BenchRow]) -> Measured | None:
    widest = max(group, key=lambda r: r.cell.k)
    cell, plain = widest.cell, baseline_of(rows, widest.cell.temperature)
    if plain is None or not plain.tokens_per_second:
        return None
    plain_ms = 1000 / plain.tokens_per_second
    simulated = bench.plan.settings.simulated_rtt_ms
    calls = None if simulated else _per_call_ms(rows, cell.temperature)
    other_ms = max(0.0, sum(r.split.rule_ms + r.split.other_ms for r in group) / sum(map(_steady, group)))
    none_ms = max(0.0, (calls or plain_ms) - other_ms)
    network_included = any(r.split.call_ms > 0 for r in group)
    return Measured(
        source=f"{cell.draft}, {cell.rule}, T = {cell.temperature:g} → {bench.plan.settings.target}",
        rounds=widest.rounds,
        kept=padded(widest.kept, cell.k),
        proposed=_proposed({r.cell.k: r.drafted / r.rounds for r in group}, widest.rounds),
        reached=padded(widest.reached, cell.k),
        alpha=widest.acceptance or 0.0,
        plain_ms=plain_ms,
        draft_ms=sum(r.split.draft_ms for r in group) / sum(_steady(r) * r.drafted / r.rounds for r in group),
        verify=VerifyCurve.of(
            [(0.0, none_ms), *((r.drafted / r.rounds, target_ms(r.split) / _steady(r)) for r in group)]
        ),
        other_ms=other_ms,
        per_call_ms=calls,
        rtt_ms=simulated,
        network_included=network_included,
        direct=tuple(sorted((r.cell.k, r.tokens / r.rounds) for r in group)),
        way=_way(bench) if network_included else None,
        output_tokens=round(widest.tokens / widest.trials),
    )


def _steady(row: BenchRow) -> int:
    """Rounds after the first of each run: the split is over these only."""
    return row.rounds - row.trials


def _per_call_ms(rows: Sequence[BenchRow], temperature: float) -> float | None:
    found = (r for r in rows if r.cell.baseline == _PER_CALL and r.cell.temperature == temperature)
    row = next(found, None)
    return 1000 / row.tokens_per_second if row and row.tokens_per_second else None


def _way(bench: Bench) -> Way:
    """The way in the settings; which way "auto" chose is not in the file."""
    way = bench.plan.settings.verification
    return "scoring" if way == "auto" else way


def from_prediction(prediction: Prediction) -> list[Measured]:
    """One per draft, temperature and rule for which a prediction has times, in its order.

    Raises:
        SettingsError: its figures contradict each other.
    """
    groups: dict[tuple[str, float, str], list[Forecast]] = defaultdict(list)
    for row in prediction.rows:
        if row.k and row.kept and row.draft_ms is not None and row.verify_ms is not None:
            groups[row.draft, row.temperature, row.rule].append(row)
    try:
        found = [_predicted(prediction, group) for group in groups.values()]
    except ValueError as exc:
        raise SettingsError(f"The saved prediction is damaged: {exc}.", "Predict again.") from exc
    return [one for one in found if one is not None]


def _predicted(prediction: Prediction, group: Sequence[Forecast]) -> Measured | None:
    widest = max(group, key=lambda row: row.k)
    temperature = float(f"{widest.temperature:g}")  # as the file has it
    plain_ms, calls = prediction.plain_ms.get(temperature), prediction.verify_ms.get(temperature)
    if plain_ms is None or not calls:
        return None
    k, rounds, whole = widest.k, widest.rounds, max(1, round(widest.rounds))
    drafted = {row.k: row.drafted_per_round or 0.0 for row in group}
    if not (rounds and drafted[k] and all(row.tokens_per_round for row in group)):
        raise ValueError("it has times of a draft, but no rounds, no drafted tokens or no tokens")
    if max(len(widest.kept), len(widest.reached)) > k:
        raise ValueError(f"{len(widest.kept)} positions in a block of {k}")
    curve = VerifyCurve.of(({0.0: plain_ms} | {float(n): ms for n, ms in calls.items()}).items())
    name = f"{widest.draft}, {widest.rule}, T = {widest.temperature:g}"
    return Measured(
        source=f"predicted: {name} → {prediction.plan.settings.target}",
        rounds=whole,
        kept=_falling(np.minimum(1, np.array(padded(widest.kept, k)) / rounds) * whole),
        proposed=_proposed(drafted, whole),
        reached=padded([n * whole / rounds for n in widest.reached], k),
        alpha=widest.acceptance or 0.0,
        plain_ms=plain_ms,
        draft_ms=(widest.draft_ms or 0.0) / drafted[k],
        verify=curve,
        direct=tuple(sorted((row.k, row.tokens_per_round or 0.0) for row in group)),
        other_ms=max(0.0, (widest.verify_ms or 0.0) - float(curve(drafted[k]))),
    )


def _proposed(drafted: Mapping[int, float], rounds: int) -> tuple[float, ...]:
    """Rounds that draft at least j tokens, for each j: the growth of the drafted tokens per round from K to K + 1."""
    known = {0: 0.0, **drafted}
    ks = sorted(known)
    shares = np.diff(np.interp(range(ks[-1] + 1), ks, [known[k] for k in ks]))
    return _falling(np.clip(shares, 0, 1) * rounds)


def _falling(counts: Floats) -> tuple[float, ...]:
    """Counts of "at least so many" cannot rise from one position to the next."""
    return tuple(np.minimum.accumulate(counts).tolist())
