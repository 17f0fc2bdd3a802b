"""Which K is fastest: tokens per round over the time of a round, both from measurements. Pure functions.

The formulas are those of Leviathan, Kalman and Matias 2023 (arXiv:2211.17192), with two changes: a measured acceptance
for every position instead of one α for all, and a verification time that grows with the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

#: A rate measured over fewer rounds than this is not extrapolated beyond the measured positions.
TRUSTED_ROUNDS = 10
#: Minimum distance between two points of the curve, in tokens.
_APART = 0.5


@dataclass(frozen=True, slots=True)
class VerifyCurve:
    """Time of one call to the target, by the number of drafted tokens in it.

    Attributes:
        points: (drafted tokens, ms), by length; at least one. A block without drafted tokens is one plain token.
    """

    points: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, points: Iterable[tuple[float, float]]) -> VerifyCurve:
        """From points in any order. Points less than half a token apart are averaged: their slope would be noise."""
        groups: list[list[tuple[float, float]]] = []
        for point in sorted(points):
            near = bool(groups) and groups[-1][0][0] > 0 and point[0] - groups[-1][0][0] < _APART
            same = bool(groups) and groups[-1][0][0] == point[0]
            groups[-1].append(point) if near or same else groups.append([point])
        return cls(tuple((fmean(x for x, _ in group), fmean(ms for _, ms in group)) for group in groups))

    def __call__(self, lengths: ArrayLike) -> Floats:
        """Linear between the points; after the last point, the slope of the last two, but never negative."""
        x, (xs, ys) = np.asarray(lengths, dtype=np.float64), np.array(self.points, dtype=np.float64).T
        slope = max(0.0, (ys[-1] - ys[-2]) / (xs[-1] - xs[-2])) if len(xs) > 1 else 0.0
        beyond: Floats = np.interp(x, xs, ys) + slope * np.maximum(0.0, x - xs[-1])
        return beyond


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """Tokens and time of a round, for any K.

    Attributes:
        rounds: number of rounds counted.
        kept: per position of the block, the number of rounds that accepted at least that many tokens: kept[j-1] /
            rounds is the probability of j or more. proposed: the number of rounds that drafted at least that many.
        draft_ms: per drafted token. verify: per call. other_ms: rule and everything else, per round.
        direct: (K, tokens per round) of runs that were measured at several K, if any. They correct the estimate: a long
            round that is truncated to a smaller K differs from a round of that K, because rounds of a smaller K start
            at other positions of the text.
    """

    rounds: int
    kept: tuple[float, ...]
    proposed: tuple[float, ...]
    draft_ms: float
    verify: VerifyCurve
    other_ms: float = 0.0
    direct: tuple[tuple[int, float], ...] = ()

    def at_least(self, ks: ArrayLike) -> Floats:
        """Probability that a round accepts k tokens or more, when it may draft that many; 1 for k = 0."""
        return _continued(self.kept, self.rounds, ks)

    def drafts(self, ks: ArrayLike) -> Floats:
        """Probability that a round drafts k tokens or more when it may: a draft can end early, or propose nothing."""
        return _continued(self.proposed, self.rounds, ks)

    def tokens_per_round(self, ks: ArrayLike) -> Floats:
        """1 + Σ P(at least j accepted) over j ≤ k: the accepted tokens, and the resampled or bonus token.

        At a K of `direct`, the measured value; between those, the sum is corrected in proportion.
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
        """Expected time of the call, over the lengths of the blocks of at most k tokens."""

        def step(js: Floats) -> Floats:
            return self.drafts(js) * (self.verify(js) - self.verify(js - 1))

        return self.verify(0) + _summed(step, ks)

    def round_ms(self, ks: ArrayLike, *, rtt_ms: float = 0.0, draft_ms: float | None = None) -> Floats:
        """Expected time of a round: draft, one call, one round trip, rule; `draft_ms` None means the measured one."""
        drafting = self.drafted_per_round(ks) * (self.draft_ms if draft_ms is None else draft_ms)
        return drafting + self.verify_ms(ks) + rtt_ms + self.other_ms

    def tokens_per_second(self, ks: ArrayLike, *, rtt_ms: float = 0.0, draft_ms: float | None = None) -> Floats:
        """Tokens per round over the time of a round; 0 where no time was measured."""
        ms = self.round_ms(ks, rtt_ms=rtt_ms, draft_ms=draft_ms)
        speed: Floats = np.where(ms > 0, 1000 * self.tokens_per_round(ks) / np.where(ms > 0, ms, 1.0), 0.0)
        return speed

    def best_k(self, ks: Sequence[int], *, rtt_ms: float = 0.0, draft_ms: float | None = None) -> int:
        """The fastest of these k, the first on a tie. K = 0 is a round without a draft."""
        return int(ks[int(np.argmax(self.tokens_per_second(np.array(ks), rtt_ms=rtt_ms, draft_ms=draft_ms)))])


def _continued(counts: Sequence[float], rounds: int, ks: ArrayLike) -> Floats:
    """Shares of the rounds: 1 at position 0; after the counts, geometric with the last rate of `TRUSTED_ROUNDS`."""
    at = np.asarray(ks, dtype=np.int64)
    longest = int(at.max(initial=0))
    before: list[float] = [float(rounds), *counts]
    trusted = [j for j in range(1, len(before)) if before[j - 1] >= min(TRUSTED_ROUNDS, rounds)]
    last = before[trusted[-1]] / before[trusted[-1] - 1] if trusted else 0.0
    while len(before) <= longest:
        before.append(before[-1] * min(1.0, last))
    shares: Floats = np.array(before, dtype=np.float64)[at] / rounds
    return shares


def _summed(term: Callable[[Floats], Floats], ks: ArrayLike) -> Floats:
    """Σ term(j) over 1 ≤ j ≤ k, for each k."""
    at = np.asarray(ks, dtype=np.int64)
    terms = term(np.arange(1, int(at.max(initial=0)) + 1, dtype=np.float64))
    sums: Floats = np.concatenate(([0.0], np.cumsum(terms)))[at]
    return sums
