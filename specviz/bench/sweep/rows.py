"""From single runs to one row per cell: rates, both means, speed-ups with intervals, positions, domains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from specviz.bench.statistics import Interval, bootstrap_ratio, bootstrap_share, mean, quartiles
from specviz.bench.sweep.plan import Cell
from specviz.bench.sweep.results import Bench, Failure, Trial
from specviz.core.events import Guarantee, TimeSplit, worst
from specviz.core.tally import rate
from specviz.record.state import Baseline


@dataclass(frozen=True, slots=True)
class Domain:
    """A cell in one domain of the suite; None where nothing is known."""

    acceptance: float | None
    tokens_per_round: float | None
    speedup: float | None
    prompts: int


@dataclass(frozen=True, slots=True)
class BenchRow:
    """A cell over all of its runs. What is not known is None.

    Token-weighted means divide sums: a long answer counts as much as its tokens. Prompt-weighted ones (`…_by_prompt`)
    are means of the prompts' own figures: each counts the same.

    Attributes:
        prompts, trials, tokens: how much it is the mean of. rounds, drafted: sums.
        acceptance: accepted / tested, with its interval.
        accepted_per_round: the mean accepted length; `tokens_per_round` has the resampled or bonus token too.
        tokens_per_second: without first rounds. spread: quartiles of the single runs.
        speedup: against the baseline on the same prompts, with its 95 % interval; None for the baseline itself.
        speedup_per_call: the same against one call per token, where that was measured.
        proposed, reached, kept: per position of the block.
        split: sums of the steady rounds, in ms.
        same_text: at temperature 0, on how many of the prompts the output is the baseline's own, of how many.
        guarantee: of its runs; the worst where they differ.
        failure: why it is not, or not wholly, measured.
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


@dataclass(slots=True)
class _Sum:
    """Counts of runs: of one cell on one prompt, or of several such sums together."""

    tokens: int = 0
    rounds: int = 0
    tested: int = 0
    accepted: int = 0
    steady_tokens: int = 0
    steady_ms: float = 0.0

    def add(self, more: Trial | _Sum) -> None:
        self.tokens += more.tokens
        self.rounds += more.rounds
        self.tested += more.tested
        self.accepted += more.accepted
        self.steady_tokens += more.steady_tokens
        self.steady_ms += more.steady_ms

    @property
    def speed(self) -> float | None:
        return 1000 * self.steady_tokens / self.steady_ms if self.steady_tokens and self.steady_ms else None


Sums = dict[int, _Sum]


def rows_of(bench: Bench) -> list[BenchRow]:
    """One row per cell of the plan, in its order; cells without a run have one too."""
    cells = bench.plan.cells()
    trials: list[list[Trial]] = [[] for _ in cells]
    for trial in bench.trials:
        trials[trial.cell].append(trial)
    failures = {f.cell: f for f in bench.failures}
    return [_row(bench, cells, i, trials, failures.get(i)) for i in range(len(cells))]


def baseline_of(rows: Iterable[BenchRow], temperature: float) -> BenchRow | None:
    """The row that speed-ups at this temperature are against; None before it has a run."""
    plain = (r for r in rows if r.cell.baseline and r.trials and r.cell.temperature == temperature)
    return next(plain, None)


def _row(
    bench: Bench, cells: Sequence[Cell], i: int, trials: Sequence[list[Trial]], failure: Failure | None
) -> BenchRow:
    cell, own = cells[i], trials[i]
    sums = _by_prompt(own)
    kind = _compared_with(bench, cells, trials, cell.temperature)
    plain = _of_baseline(cells, trials, cell, kind) if kind else {}
    compared = None if cell.baseline == kind else _paired(sums, plain, bench.plan.settings.seed)
    per_call = _of_baseline(cells, trials, cell, "one call per token")
    whole = _together(sums.values())
    each = list(sums.values())
    return BenchRow(
        cell=cell,
        prompts=len(sums),
        trials=len(own),
        tokens=whole.tokens,
        rounds=whole.rounds,
        drafted=sum(t.drafted for t in own),
        acceptance=rate(whole.accepted, whole.tested),
        acceptance_interval=bootstrap_share([s.accepted for s in each], [s.tested for s in each]),
        acceptance_by_prompt=mean([s.accepted / s.tested for s in each if s.tested]),
        accepted_per_round=rate(whole.accepted, whole.rounds),
        accepted_per_round_by_prompt=mean([s.accepted / s.rounds for s in each if s.rounds]),
        tokens_per_round=rate(whole.tokens, whole.rounds),
        tokens_per_round_interval=bootstrap_share([s.tokens for s in each], [s.rounds for s in each]),
        tokens_per_round_by_prompt=mean([s.tokens / s.rounds for s in each if s.rounds]),
        tokens_per_second=whole.speed,
        tokens_per_second_by_prompt=mean([v for s in each if (v := s.speed)]),
        spread=quartiles([v for t in own if (v := t.tokens_per_second)]),
        speedup=compared.ratio if compared else None,
        speedup_interval=compared.interval if compared else None,
        speedup_by_prompt=compared.by_prompt if compared else None,
        speedup_per_call=_paired(sums, per_call, 0).ratio if per_call and not cell.baseline else None,
        proposed=_positions(t.proposed for t in own),
        reached=_positions(t.reached for t in own),
        kept=_positions(t.kept for t in own),
        split=_split(own),
        billed_prompt=_known(t.billed_prompt for t in own),
        billed_completion=_known(t.billed_completion for t in own),
        requests=_known(t.requests for t in own),
        same_text=_same(own, cells, trials, cell),
        guarantee=_worst(t.guarantee for t in own),
        domains=_domains(bench, sums, plain if compared else {}),
        failure=failure,
    )


def _compared_with(
    bench: Bench, cells: Sequence[Cell], trials: Sequence[list[Trial]], temperature: float
) -> Baseline | None:
    """The first kind of baseline of which there is something: a server may stream in a way that nobody can count."""
    measured = {c.baseline for c, own in zip(cells, trials, strict=True) if own and c.temperature == temperature}
    return next((kind for kind in bench.plan.baselines if kind in measured), None)


def _by_prompt(trials: Iterable[Trial]) -> Sums:
    sums: Sums = {}
    for trial in sorted(trials, key=lambda t: t.key):
        sums.setdefault(trial.prompt, _Sum()).add(trial)
    return sums


def _of_baseline(cells: Sequence[Cell], trials: Sequence[list[Trial]], cell: Cell, kind: Baseline) -> Sums:
    at = [i for i, c in enumerate(cells) if c.baseline == kind and c.temperature == cell.temperature]
    return _by_prompt(trials[at[0]]) if at else {}


@dataclass(frozen=True, slots=True)
class _Compared:
    ratio: float | None
    interval: Interval | None
    by_prompt: float | None


def _paired(sums: Sums, plain: Sums, seed: int) -> _Compared:
    """Against the baseline, over the prompts that both have decoded more than a first round of."""
    both = [(s, plain[p]) for p, s in sums.items() if s.speed and p in plain and plain[p].speed]
    if not both:
        return _Compared(None, None, None)
    own, base = _together(s for s, _ in both), _together(b for _, b in both)
    each = [(s.speed or 0.0) / (b.speed or 1.0) for s, b in both]
    interval = bootstrap_ratio(
        [s.steady_tokens for s, _ in both], [s.steady_ms for s, _ in both],
        [b.steady_tokens for _, b in both], [b.steady_ms for _, b in both], seed,
    )  # fmt: skip
    return _Compared((own.speed or 0.0) / (base.speed or 1.0), interval, mean(each))


def _together(sums: Iterable[_Sum]) -> _Sum:
    whole = _Sum()
    for s in sums:
        whole.add(s)
    return whole


def _positions(counts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(at) for at in zip_longest(*counts, fillvalue=0))


def _split(trials: Sequence[Trial]) -> TimeSplit:
    """Not added to the zeros of no run at all: a part that no run knows stays unknown."""
    if not trials:
        return TimeSplit()
    total = trials[0].split
    for trial in trials[1:]:
        total = total + trial.split
    return total


def _known(counts: Iterable[int | None]) -> int | None:
    known = [n for n in counts if n is not None]
    return sum(known) if known else None


def _same(
    own: Sequence[Trial], cells: Sequence[Cell], trials: Sequence[list[Trial]], cell: Cell
) -> tuple[int, int] | None:
    """Outputs can be compared where nothing is drawn; a stream tells no token ids."""
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


def _domains(bench: Bench, sums: Sums, plain: Sums) -> dict[str, Domain]:
    found: dict[str, Domain] = {}
    for domain in dict.fromkeys(p.domain for p in bench.prompts):
        inside = {p: s for p, s in sums.items() if bench.prompts[p].domain == domain}
        if not inside:
            continue
        whole = _together(inside.values())
        speedup = _paired(inside, plain, 0).ratio if plain else None
        found[domain] = Domain(
            rate(whole.accepted, whole.tested), rate(whole.tokens, whole.rounds), speedup, len(inside)
        )
    return found
