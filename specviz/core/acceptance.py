"""How much of a text a draft would have had accepted: Σ min(p, q) at each of its tokens, and the figures made of that.

The text is there already. At each of its tokens Σ min(p, q) is the probability that rejection sampling keeps the token
that the draft proposes there (Leviathan et al. 2023, theorem 3.5); at temperature 0 it is 1 where both models have the
same most probable token, and 0 elsewhere. It is what a round with K = 1 accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specviz.core.sampling import Logits, Row, overlap, to_probs
from specviz.core.settings import Sampling

Rates = NDArray[np.float64]

#: The K of the expected length: the default of a run.
LENGTH_K = 4


def overlaps(logits: Iterable[Logits], rows: Iterable[Row], sampling: Sampling) -> Rates:
    """Σ min(p, q) at each position of a text.

    It does not matter which of the two models is which: the sum is symmetric.

    Args:
        logits: of one model, position by position, each (V,).
        rows: of the other model at the same positions, with the sampling settings applied; ids are those of `logits`.
        sampling: the settings that `logits` are still to be sampled with.

    Returns:
        (L,) from 0 to 1.
    """
    return np.array([overlap(to_probs(own, sampling), row) for own, row in zip(logits, rows, strict=True)])


def expected_lengths(rates: Rates, k: int = LENGTH_K) -> Rates:
    """Expected accepted tokens of a block of k, for each block that fits the text: Σ of the products of its rates.

    Args:
        rates: (L,) acceptance at each position of one text.

    Returns:
        (L - k + 1,); empty for a shorter text.
    """
    if len(rates) < k:
        return np.empty(0)
    windows = np.lib.stride_tricks.sliding_window_view(rates, k)
    lengths: Rates = np.cumprod(windows, axis=1).sum(axis=1)
    return lengths


@dataclass(frozen=True, slots=True)
class AcceptanceFigure:
    """Acceptance in one domain, or over all domains, at one temperature.

    Attributes:
        domain: "all" for the mean over all domains.
        acceptance: mean over the tokens.
        length: expected accepted tokens of a block of `LENGTH_K`; None where every text is shorter than that.
        tokens, texts: how many the figure is the mean of.
    """

    domain: str
    temperature: float
    acceptance: float
    length: float | None
    tokens: int
    texts: int


def figures(measured: Iterable[tuple[str, float, Rates]]) -> list[AcceptanceFigure]:
    """For each temperature a figure for each domain, in the order of their first texts, and one over all.

    Args:
        measured: domain, temperature and (L,) acceptance of each text.
    """
    groups: dict[tuple[float, str], list[Rates]] = {}
    for domain, temperature, rates in measured:
        groups.setdefault((temperature, domain), []).append(rates)
    found: list[AcceptanceFigure] = []
    for temperature in sorted({t for t, _ in groups}):
        own = {domain: rates for (t, domain), rates in groups.items() if t == temperature}
        found += [_figure(domain, temperature, rates) for domain, rates in own.items()]
        found.append(_figure("all", temperature, [r for rates in own.values() for r in rates]))
    return found


def _figure(domain: str, temperature: float, rates: Sequence[Rates]) -> AcceptanceFigure:
    together = np.concatenate(rates)
    lengths = np.concatenate([expected_lengths(r) for r in rates])
    length = float(lengths.mean()) if len(lengths) else None
    return AcceptanceFigure(domain, temperature, float(together.mean()), length, len(together), len(rates))


def overall(found: Iterable[AcceptanceFigure]) -> Mapping[float, float]:
    """Temperature → acceptance over all domains."""
    return {f.temperature: f.acceptance for f in found if f.domain == "all"}
