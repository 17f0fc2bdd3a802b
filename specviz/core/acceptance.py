"""Expected acceptance of a draft along an existing text: Σ min(p, q) at each token, and figures computed from it.

Σ min(p, q) is the probability that rejection sampling keeps the token that the draft proposes at that position
(Leviathan et al. 2023, theorem 3.5). At temperature 0 it is 1 where both models have the same most probable token, and
0 elsewhere. It is the expected number of accepted tokens of a round with K = 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specviz.core.sampling import Logits, Row, overlap, row_of
from specviz.core.settings import Sampling

Rates = NDArray[np.float64]

#: K of the expected accepted length: the default K of a run.
LENGTH_K = 4


def overlaps(logits: Iterable[Logits], rows: Iterable[Row], sampling: Sampling) -> Rates:
    """Σ min(p, q) at each position of a text.

    The sum is symmetric, so either model can be the target.

    Args:
        logits: of one model, one (V,) array per position.
        rows: of the other model at the same positions, with the sampling settings applied; same token ids as `logits`.
        sampling: the settings to apply to `logits`.

    Returns:
        (L,) values from 0 to 1.
    """
    return np.array([overlap(row_of(own, sampling), row) for own, row in zip(logits, rows, strict=True)])


def expected_lengths(rates: Rates, k: int = LENGTH_K) -> Rates:
    """Expected accepted tokens of each block of k positions in the text: Σ over j ≤ k of the product of j rates.

    Args:
        rates: (L,) acceptance at each position of one text.

    Returns:
        (L - k + 1,); empty when the text has fewer than k tokens.
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
        length: expected accepted tokens of a block of `LENGTH_K`; None when every text is shorter than that.
        tokens, texts: number of tokens and of texts in the mean.
    """

    domain: str
    temperature: float
    acceptance: float
    length: float | None
    tokens: int
    texts: int


def figures(measured: Iterable[tuple[str, float, Rates]]) -> list[AcceptanceFigure]:
    """One figure per temperature and domain, domains in order of first appearance, then one over all domains.

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
