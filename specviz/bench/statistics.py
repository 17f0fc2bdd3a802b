"""Ratios with their 95 % intervals, by bootstrap over prompts (Efron & Tibshirani 1993, chapter 13: percentiles)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = Collection[float]

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
    tokens: Numbers,
    ms: Numbers,
    base_tokens: Numbers,
    base_ms: Numbers,
    seed: int = 0,
) -> Interval | None:
    """The interval of a speed-up: (Σ tokens / Σ ms) over that of the baseline, prompts drawn with replacement.

    Both sides have the same prompts in the same order, so that a hard prompt is hard in both.

    Args:
        tokens, ms, base_tokens, base_ms: (prompts,), sums over the repeats of each prompt.

    Returns:
        None for fewer than two prompts: one prompt says nothing about others.
    """
    if len(tokens) < 2:
        return None
    drawn = _draws(len(tokens), seed)
    own, base = (_sums(a, drawn) / _sums(b, drawn) for a, b in ((tokens, ms), (base_tokens, base_ms)))
    return _middle(own / base)


def bootstrap_share(part: Numbers, whole: Numbers, seed: int = 0) -> Interval | None:
    """The interval of Σ part / Σ whole, prompts drawn with replacement; None for fewer than two, or an empty whole."""
    if len(part) < 2:
        return None
    drawn = _draws(len(part), seed)
    sums = _sums(whole, drawn)
    if not (sums > 0).all():
        return None
    return _middle(_sums(part, drawn) / sums)


def mean(values: Numbers) -> float | None:
    """The arithmetic mean; None if there are no values."""
    return float(np.mean(_array(values))) if len(values) else None


def quartiles(values: Numbers) -> tuple[float, float, float] | None:
    """Lower quartile, median, upper quartile; None if there are no values."""
    if not len(values):
        return None
    low, middle, high = np.quantile(_array(values), [0.25, 0.5, 0.75])
    return float(low), float(middle), float(high)


def _middle(ratios: NDArray[np.float64]) -> Interval:
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def _draws(n: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))


def _sums(values: Numbers, drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    sums: NDArray[np.float64] = _array(values)[drawn].sum(axis=1)
    return sums


def _array(values: Numbers) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)
