"""What planning needs to know of a draft, a target and a machine: how much is kept, and what everything takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specviz.core.events import Metrics, TimeSplit, Way
from specviz.core.settings import K_MAX
from specviz.core.tally import rate
from specviz.record.state import RunState

Floats = NDArray[np.float64]

#: A rate of fewer rounds than this is not continued beyond the measured positions.
_TRUSTED_ROUNDS = 10
#: A block length is a point of the curve from this share of the rounds on, and from so many rounds.
_POINT_SHARE, _POINT_ROUNDS = 0.1, 3
#: Tokens between two points of the curve, at least.
_APART = 0.5


@dataclass(frozen=True, slots=True)
class VerifyCurve:
    """What one call to the target takes, by the number of drafted tokens in it.

    Attributes:
        points: (drafted tokens, ms), by length; at least one. No draft at all is one plain token.
    """

    points: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, points: Iterable[tuple[float, float]]) -> VerifyCurve:
        """From points in any order. Those less than half a token apart are averaged: their slope would be chance."""
        groups: list[list[tuple[float, float]]] = []
        for point in sorted(points):
            near = bool(groups) and groups[-1][0][0] > 0 and point[0] - groups[-1][0][0] < _APART
            same = bool(groups) and groups[-1][0][0] == point[0]
            groups[-1].append(point) if near or same else groups.append([point])
        return cls(tuple((fmean(x for x, _ in group), fmean(ms for _, ms in group)) for group in groups))

    def __call__(self, lengths: ArrayLike) -> Floats:
        """Linear between the points; beyond the last with the slope of the last two, but never falling."""
        x, (xs, ys) = np.asarray(lengths, dtype=np.float64), np.array(self.points, dtype=np.float64).T
        slope = max(0.0, (ys[-1] - ys[-2]) / (xs[-1] - xs[-2])) if len(xs) > 1 else 0.0
        beyond: Floats = np.interp(x, xs, ys) + slope * np.maximum(0.0, x - xs[-1])
        return beyond


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured, or what somebody assumes.

    Attributes:
        source: what it is, for a person; may hold names that somebody else chose.
        rounds: that were counted. kept: per position of the block, rounds that accepted at least so many tokens, so
            that kept[j-1] / rounds is the probability of j or more. proposed: rounds that drafted so many. reached:
            rounds that tested the token there.
        alpha: accepted / tested.
        plain_ms: of a token of plain decoding, which streams where the target is remote.
        draft_ms: of a drafted token. verify: of one call, without a network that was only simulated. other_ms: rule
            and everything else, per round.
        per_call_ms: of a plain token that is a call of its own; None where that is `plain_ms` and a round trip.
        rtt_ms: round trip that was simulated, and is in none of these times.
        holds_way: a real network is in `verify`, since nobody divided the calls.
        assumed: nothing was measured.
        direct: (K, tokens per round) of the runs at several K, where there were any: rounds that are cut short are not
            quite rounds of a smaller K, which begin at other places of the text.
        way: how the target verifies, which decides what it bills. prompt_tokens, output_tokens: of the run.
    """

    source: str
    rounds: int
    kept: tuple[float, ...]
    proposed: tuple[float, ...]
    reached: tuple[float, ...]
    alpha: float
    plain_ms: float
    draft_ms: float
    verify: VerifyCurve
    other_ms: float = 0.0
    per_call_ms: float | None = None
    rtt_ms: float = 0.0
    holds_way: bool = False
    assumed: bool = False
    direct: tuple[tuple[int, float], ...] = ()
    way: Way = "rows"
    prompt_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def k(self) -> int:
        """The largest K of which something is known."""
        return len(self.kept)

    def acceptance_by_position(self) -> list[float]:
        """Accepted / tested at each position, as far as enough rounds got to say."""
        enough = min(_TRUSTED_ROUNDS, self.rounds)
        return [k / n for k, n in zip(self.kept, self.reached, strict=True) if n and (self.assumed or n >= enough)]

    def is_extrapolated(self, k: int) -> bool:
        """Whether nothing was measured at this position, so that the last rate is carried on."""
        return not self.assumed and k > self.k

    def at_least(self, ks: ArrayLike) -> Floats:
        """Probability that a round accepts k tokens or more, if it drafts as many; 1 at 0."""
        return _continued(self.kept, self.rounds, ks)

    def drafts(self, ks: ArrayLike) -> Floats:
        """Probability that a round drafts k tokens or more when it may: a draft may end early, or find nothing."""
        return _continued(self.proposed, self.rounds, ks)

    def tokens_per_round(self, ks: ArrayLike) -> Floats:
        """1 + Σ P(at least j accepted) over j ≤ k: the accepted tokens, and the resampled or bonus token.

        At a K that was measured itself, as it was; between those as far from the sum as they are.
        """
        sums = 1 + _summed(self.at_least, ks)
        at = np.array([0, *(k for k, _ in self.direct)])
        off = np.array([1.0, *(tokens / (1 + _summed(self.at_least, k)) for k, tokens in self.direct)])
        tokens: Floats = sums * np.interp(np.asarray(ks, dtype=np.float64), at, off)
        return tokens

    def drafted_per_round(self, ks: ArrayLike) -> Floats:
        """Σ P(at least j drafted) over j ≤ k."""
        return _summed(self.drafts, ks)

    def verify_ms(self, ks: ArrayLike) -> Floats:
        """Expected time of the call, over the lengths that the blocks of at most k tokens have."""

        def step(js: Floats) -> Floats:
            return self.drafts(js) * (self.verify(js) - self.verify(js - 1))

        return self.verify(0) + _summed(step, ks)

    def tokens_interval(self, k: int) -> tuple[float, float] | None:
        """95 % interval of the tokens per round at k, rounds taken as independent; None of an assumption.

        E[X²] = Σ (2j − 1) P(X ≥ j) gives the variance of the accepted tokens from the same counts.
        """
        if self.assumed or self.rounds < 2 or self.is_extrapolated(k):
            return None
        js = np.arange(1, k + 1)
        at_least = self.at_least(js)
        variance = float((at_least * (2 * js - 1)).sum() - at_least.sum() ** 2)
        half = 1.96 * (max(0.0, variance) / (self.rounds - 1)) ** 0.5
        mean = float(self.tokens_per_round(k))
        return max(1.0, mean - half), min(1.0 + k, mean + half)


def _continued(counts: Sequence[float], rounds: int, ks: ArrayLike) -> Floats:
    """Shares of the rounds; 1 at position 0, and beyond the counts geometric with the last rate that can be trusted."""
    at = np.asarray(ks, dtype=np.int64)
    longest = int(at.max(initial=0))
    before: list[float] = [float(rounds), *counts]
    trusted = [j for j in range(1, len(before)) if before[j - 1] >= min(_TRUSTED_ROUNDS, rounds)]
    last = before[trusted[-1]] / before[trusted[-1] - 1] if trusted else 0.0
    while len(before) <= longest:
        before.append(before[-1] * min(1.0, last))
    shares: Floats = np.array(before, dtype=np.float64)[at] / rounds
    return shares


def _summed(term: Any, ks: ArrayLike) -> Floats:
    """Σ term(j) over 1 ≤ j ≤ k, for each k."""
    at = np.asarray(ks, dtype=np.int64)
    terms = term(np.arange(1, int(at.max(initial=0)) + 1, dtype=np.float64))
    sums: Floats = np.concatenate(([0.0], np.cumsum(terms)))[at]
    return sums


def by_hand(
    alpha: float, plain_ms: float, draft_ms: float, passes: Iterable[tuple[float, float]], other_ms: float = 0.0
) -> Measured:
    """Assumptions: every position is accepted alike.

    Args:
        passes: (drafted tokens, ms) of calls to the target; that of none is `plain_ms`.
    """
    return Measured(
        "by hand", 1, tuple(alpha**j for j in range(1, K_MAX + 1)), (1,) * K_MAX,
        tuple(alpha**j for j in range(K_MAX)), alpha, plain_ms, draft_ms,
        VerifyCurve.of([(0, plain_ms), *passes]), other_ms, assumed=True,
    )  # fmt: skip


def from_run(state: RunState) -> Measured | None:
    """What a run has measured so far; None while plain decoding, acceptance or times are not known.

    Times leave the first round out: it reads the prompt, which plain decoding does as well.
    """
    started, rounds = state.started, state.rounds
    alpha = rate(sum(state.kept), sum(state.reached))
    if started is None or not started.baseline_tps or len(rounds) < 2 or alpha is None or not state.proposed:
        return None
    times = rounds[1:]
    drafted = sum(m.drafted for m in times)
    plain_ms = 1000 / started.baseline_tps
    simulated = started.way == "rows" and started.simulated_rtt_ms > 0
    calls = None if simulated or not started.per_call_tps else 1000 / started.per_call_tps
    other_ms = max(0.0, fmean(m.split.rule_ms + m.split.other_ms for m in times))
    return Measured(
        source=f"{started.draft} → {started.target}, K = {len(state.proposed)}",
        rounds=len(rounds),
        kept=padded(state.kept, len(state.proposed)),
        proposed=tuple(state.proposed),
        reached=padded(state.reached, len(state.proposed)),
        alpha=alpha,
        plain_ms=plain_ms,
        draft_ms=sum(m.split.draft_ms for m in times) / drafted if drafted else 0.0,
        verify=_curve(times, max(0.0, (calls or plain_ms) - other_ms)),
        other_ms=other_ms,
        per_call_ms=calls,
        rtt_ms=started.simulated_rtt_ms,
        holds_way=started.way != "rows",
        way=started.way,
        prompt_tokens=len(started.prompt_ids) or None,
        output_tokens=len(state.text) or None,
    )


def padded(counts: Sequence[float], k: int) -> tuple[float, ...]:
    """The first k counts; 0 where no round got to."""
    return tuple(counts[:k]) + (0,) * (k - len(counts))


def target_ms(split: TimeSplit) -> float:
    """What a target was waited for, without a network that can be told apart."""
    return split.verify_ms - (split.network_ms or 0.0)


def _curve(rounds: Sequence[Metrics], none_ms: float) -> VerifyCurve:
    """One point per block length that is common enough.

    Args:
        none_ms: of no drafted token, where no block was empty: with the rest of a round that is plain decoding.
    """
    at: dict[int, list[float]] = defaultdict(list)
    for m in rounds:
        at[m.drafted].append(target_ms(m.split))
    few = min(max(_POINT_ROUNDS, _POINT_SHARE * len(rounds)), max(map(len, at.values())))
    points = {float(length): fmean(ms) for length, ms in at.items() if len(ms) >= few}
    return VerifyCurve.of(({0.0: none_ms} | points).items())
