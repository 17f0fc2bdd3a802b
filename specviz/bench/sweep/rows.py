"""From single runs to one row per cell: rates, two kinds of means, speed-ups with intervals, positions, domains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from specviz.bench.statistics import Interval, bootstrap_ratio, bootstrap_share, mean, quartiles
from specviz.bench.sweep.plan import Cell
from specviz.bench.sweep.results import Bench, Failure, Trial
from specviz.core.events import TimeSplit
from specviz.core.guarantee import Guarantee, worst
from specviz.core.known import sum_known
from specviz.core.tally import rate


@dataclass(frozen=True, slots=True)
class Domain:
    """A cell in one domain of the suite; None where a figure is not known."""

    acceptance: float | None
    tokens_per_round: float | None
    speedup: float | None
    prompts: int


@dataclass(frozen=True, slots=True)
class BenchRow:
    """A cell over all of its runs. What is not known is None.

    Token-weighted means divide sums: a long answer weighs as much as its tokens. Prompt-weighted means (`…_by_prompt`)
    are means of the figures of each prompt: every prompt weighs the same.

    Attributes:
        prompts, trials, tokens: how many the means are over. rounds, drafted: sums.
        acceptance: accepted / tested, with its interval.
        accepted_per_round: the mean accepted length; `tokens_per_round` has the resampled or bonus token too.
        tokens_per_second: without first rounds. spread: quartiles of the single runs.
        speedup: against the baseline on the same prompts, with its 95 % interval; None for the baseline itself.
        speedup_per_call: the same against one call per token, where that was measured.
        proposed, reached, kept: per position of the block.
        split: sums of the steady rounds, in ms.
        same_text: at temperature 0, (runs whose output equals the baseline's, runs that were compared).
        guarantee: of its runs; the worst where they differ.
        failure: why it is not, or not completely, measured.
    """

    cell: Cell
    prompts: int
    trials: int
    tokens: int
    rounds: int
    drafted: int
    acceptance: float | None
    acceptance_interval: Interval | None
    acceptance_by_prompt: float | None
    accepted_per_round: float | None
    accepted_per_round_by_prompt: float | None
    tokens_per_round: float | None
    tokens_per_round_interval: Interval | None
    tokens_per_round_by_prompt: float | None
    tokens_per_second: float | None
    tokens_per_second_by_prompt: float | None
    spread: tuple[float, float, float] | None
    speedup: float | None
    speedup_interval: Interval | None
    speedup_by_prompt: float | None
    speedup_per_call: float | None
    proposed: tuple[int, ...]
    reached: tuple[int, ...]
    kept: tuple[int, ...]
    split: TimeSplit
    billed_prompt: int | None
    billed_completion: int | None
    requests: int | None
    same_text: tuple[int, int] | None
    guarantee: str
    domains: dict[str, Domain]
    failure: Failure | None

    @property
    def by_position(self) -> list[float | None]:
        """Accepted / tested at each position."""
        return [rate(k, n) for k, n in zip(self.kept, self.reached, strict=True)]

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict, field by field."""
        return {**asdict(self), "by_position": self.by_position, "cell": asdict(self.cell)}


_COUNTS = ("tokens", "rounds", "tested", "accepted", "steady_tokens", "steady_ms")
#: A numpy record array, one record per prompt, with the columns of `_sums`.
Sums: TypeAlias = Any
Counts = NDArray[np.float64]


def rows_of(bench: Bench) -> list[BenchRow]:
    """One row per cell of the plan, in its order; cells without a run have one too."""
    cells = bench.plan.cells()
    trials: list[list[Trial]] = [[] for _ in cells]
    for trial in bench.trials:
        trials[trial.cell].append(trial)
    whole = _sums(bench.trials)
    sums = [whole[whole.cell == i] for i in range(len(cells))]
    failures = {f.cell: f for f in bench.failures}
    return [_row(bench, cells, i, trials, sums, failures.get(i)) for i in range(len(cells))]


def baseline_of(rows: Iterable[BenchRow], temperature: float) -> BenchRow | None:
    """The row that speed-ups at this temperature are against; None before it has a run."""
    plain = (r for r in rows if r.cell.baseline and r.trials and r.cell.temperature == temperature)
    return next(plain, None)


def _row(
    bench: Bench,
    cells: Sequence[Cell],
    i: int,
    trials: Sequence[list[Trial]],
    sums: Sequence[Sums],
    failure: Failure | None,
) -> BenchRow:
    cell, runs, own = cells[i], trials[i], sums[i]
    at = [n for n, other in enumerate(cells) if other.temperature == cell.temperature]
    baselines = {kind: sums[n] for n in at if trials[n] and (kind := cells[n].baseline)}
    # A server may stream in a way that nobody can count, so the first kind that was measured is the baseline.
    kind = next((kind for kind in bench.plan.baselines if kind in baselines), None)
    plain = baselines[kind] if kind and cell.baseline != kind else own[:0]
    calls = own[:0] if cell.baseline else baselines.get("one call per token", own[:0])
    compared = _compared(own, plain, bench.plan.settings.seed)
    return BenchRow(
        cell=cell,
        prompts=len(own),
        trials=len(runs),
        tokens=int(own.tokens.sum()),
        rounds=int(own.rounds.sum()),
        drafted=sum(t.drafted for t in runs),
        acceptance=_share(own.accepted, own.tested),
        acceptance_interval=bootstrap_share(own.accepted, own.tested),
        acceptance_by_prompt=_mean_share(own.accepted, own.tested),
        accepted_per_round=_share(own.accepted, own.rounds),
        accepted_per_round_by_prompt=_mean_share(own.accepted, own.rounds),
        tokens_per_round=_share(own.tokens, own.rounds),
        tokens_per_round_interval=bootstrap_share(own.tokens, own.rounds),
        tokens_per_round_by_prompt=_mean_share(own.tokens, own.rounds),
        tokens_per_second=_speed(own),
        tokens_per_second_by_prompt=mean(own.speed[own.speed > 0]),
        spread=quartiles([v for t in runs if (v := t.tokens_per_second)]),
        speedup=compared.ratio,
        speedup_interval=compared.interval,
        speedup_by_prompt=compared.by_prompt,
        speedup_per_call=_compared(own, calls, 0).ratio,
        proposed=_positions(t.proposed for t in runs),
        reached=_positions(t.reached for t in runs),
        kept=_positions(t.kept for t in runs),
        split=_split(runs),
        billed_prompt=sum_known(t.billed_prompt for t in runs),
        billed_completion=sum_known(t.billed_completion for t in runs),
        requests=sum_known(t.requests for t in runs),
        same_text=_same(runs, cells, trials, cell),
        guarantee=_worst(t.guarantee for t in runs),
        domains=_domains(bench, own, plain),
        failure=failure,
    )


def _sums(trials: Iterable[Trial]) -> Sums:
    """Counts by cell and prompt, summed over the repeats, with the speed in tokens per second (0: not known)."""
    sums: dict[tuple[int, int], list[float]] = {}
    for trial in sorted(trials, key=lambda t: t.key):
        one = [getattr(trial, name) for name in _COUNTS]
        before = sums.get(trial.key[:2], [0] * len(one))
        sums[trial.key[:2]] = [a + b for a, b in zip(before, one, strict=True)]
    columns = [("cell", int), ("prompt", int), *((name, float) for name in _COUNTS), ("speed", float)]
    found: Sums = np.array([(*key, *counts, 0) for key, counts in sums.items()], columns).view(np.recarray)
    timed = found.steady_ms > 0
    found.speed[timed] = 1000 * found.steady_tokens[timed] / found.steady_ms[timed]
    return found


def _share(part: Counts, whole: Counts) -> float | None:
    return rate(int(part.sum()), int(whole.sum()))


def _mean_share(part: Counts, whole: Counts) -> float | None:
    known = whole > 0
    return mean(part[known] / whole[known])


def _speed(sums: Sums) -> float | None:
    tokens, ms = float(sums.steady_tokens.sum()), float(sums.steady_ms.sum())
    return 1000 * tokens / ms if tokens and ms else None


@dataclass(frozen=True, slots=True)
class _Compared:
    ratio: float | None = None
    interval: Interval | None = None
    by_prompt: float | None = None


def _compared(own: Sums, plain: Sums, seed: int) -> _Compared:
    """Against the baseline, over the prompts where both have decoded more than a first round."""
    own, plain = own[own.speed > 0], plain[plain.speed > 0]
    own, plain = own[np.isin(own.prompt, plain.prompt)], plain[np.isin(plain.prompt, own.prompt)]
    if not len(own):
        return _Compared()
    interval = bootstrap_ratio(own.steady_tokens, own.steady_ms, plain.steady_tokens, plain.steady_ms, seed)
    return _Compared((_speed(own) or 0.0) / (_speed(plain) or 1.0), interval, mean(own.speed / plain.speed))


def _positions(counts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(at) for at in zip_longest(*counts, fillvalue=0))


def _split(trials: Sequence[Trial]) -> TimeSplit:
    """The sum begins with the first run, not with zeros, so that a part that no run knows stays unknown."""
    splits = [trial.split for trial in trials]
    return sum(splits[1:], splits[0]) if splits else TimeSplit()


def _same(
    own: Sequence[Trial], cells: Sequence[Cell], trials: Sequence[list[Trial]], cell: Cell
) -> tuple[int, int] | None:
    """Outputs can be compared at temperature 0; a streamed baseline has no token ids."""
    if cell.temperature or cell.baseline:
        return None
    at = [i for i, c in enumerate(cells) if c.baseline and c.temperature == 0]
    plain = {t.prompt: t.text_hash for i in at for t in trials[i] if t.text_hash}
    both = [(plain[t.prompt], t.text_hash) for t in own if t.prompt in plain and t.text_hash]
    return (sum(a == b for a, b in both), len(both)) if both else None


def _worst(guarantees: Iterable[str]) -> str:
    """Of the guarantees that runs have; "" where none has one."""
    named = [Guarantee.parse(text) for text in guarantees if text]
    return str(worst(*named)) if named else ""


def _domains(bench: Bench, own: Sums, plain: Sums) -> dict[str, Domain]:
    domain_of = np.array([p.domain for p in bench.prompts])[own.prompt]
    found: dict[str, Domain] = {}
    for domain in dict.fromkeys(p.domain for p in bench.prompts):
        inside = own[domain_of == domain]
        if len(inside):
            found[domain] = Domain(
                _share(inside.accepted, inside.tested),
                _share(inside.tokens, inside.rounds),
                _compared(inside, plain, 0).ratio,
                len(inside),
            )
    return found
