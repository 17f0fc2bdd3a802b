"""Ratios with their 95 % intervals, by bootstrap over prompts (Efron & Tibshirani 1993, chapter 13: percentiles)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def overlaps(self, other: Interval) -> bool:
        """Whether some value is in both."""
        return self.low <= other.high and other.low <= self.high


def bootstrap_ratio(
    tokens: Sequence[float],
    ms: Sequence[float],
    base_tokens: Sequence[float],
    base_ms: Sequence[float],
    seed: int = 0,
) -> Interval | None:
    """The interval of a speed-up: (Σ tokens / Σ ms) over the same of the baseline, prompts drawn with replacement.

    Both sides are of the same prompts in the same order, so that what is hard about a prompt is in both.

    Args:
        tokens, ms, base_tokens, base_ms: (prompts,), sums over the repeats of each prompt.

    Returns:
        None for fewer than two prompts: nothing can be said about others from one.
    """
    if len(tokens) < 2:
        return None
    drawn = _draws(len(tokens), seed)
    own, base = (_sums(a, drawn) / _sums(b, drawn) for a, b in ((tokens, ms), (base_tokens, base_ms)))
    low, high = np.quantile(own / base, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def bootstrap_share(part: Sequence[float], whole: Sequence[float], seed: int = 0) -> Interval | None:
    """The interval of Σ part / Σ whole, prompts drawn with replacement; None for fewer than two, or an empty whole."""
    if len(part) < 2:
        return None
    drawn = _draws(len(part), seed)
    sums = _sums(whole, drawn)
    if not (sums > 0).all():
        return None
    low, high = np.quantile(_sums(part, drawn) / sums, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return float(np.mean(values)) if values else None


def quartiles(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Lower quartile, median, upper quartile; None of nothing."""
    if not values:
        return None
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return float(low), float(middle), float(high)


def _draws(n: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))


def _sums(values: Sequence[float], drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = np.asarray(values, dtype=np.float64)[drawn].sum(axis=1)
    return sums
