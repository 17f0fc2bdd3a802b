"""Held-out acceptance: how much of the target's own text a draft would have had accepted, position by position.

Teacher-forced: the target writes a text, then both models score it in one pass each. Σ min(p, q) is the probability
that rejection sampling keeps the draft's token there (Leviathan et al. 2023, section 3.1); at temperature 0 it is 1
where both have the same argmax and 0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specviz.core.ports import Scorer
from specviz.core.sampling import Logits, to_probs
from specviz.core.settings import Sampling
from specviz.distill.samples import SOFT_TEMPERATURES, TeacherText
from specviz.distill.vocabulary import draft_ids
from specviz.engines.distilled import DraftVocabulary

Rates = NDArray[np.float64]

#: Tokens a round that the expected length speaks of: the default K.
K = 4


def acceptance(p_logits: Logits, q_logits: Logits, tokens: NDArray[np.int32] | None, temperature: float) -> Rates:
    """Σ min(p, q) at each position.

    Args:
        p_logits: (L, V) the target's.
        q_logits: (L, Vq) the draft's.
        tokens: (Vq,) the target id of each draft id; None where the two have the same ids.
        temperature: of both.

    Returns:
        (L,) from 0 to 1.
    """
    sampling = Sampling(temperature)
    rates = np.empty(len(p_logits))
    for i, (p_row, q_row) in enumerate(zip(p_logits, q_logits, strict=True)):
        p, q = to_probs(p_row, sampling), to_probs(q_row, sampling)
        n = min(len(p), len(q))  # padding rows have no probability
        shared = np.minimum(p[:n], q[:n]) if tokens is None else np.minimum(p[tokens], q)
        rates[i] = shared.sum()
    return rates


def expected_lengths(rates: Rates, k: int = K) -> Rates:
    """The accepted tokens to expect of a block of k that begins at each position: Σ of the products of its first rates.

    Args:
        rates: (L,) acceptance at each position of one text.

    Returns:
        (L - k + 1,), or none for a shorter text.
    """
    if len(rates) < k:
        return np.empty(0)
    windows = np.lib.stride_tricks.sliding_window_view(rates, k)
    lengths: Rates = np.cumprod(windows, axis=1).sum(axis=1)
    return lengths


@dataclass(frozen=True, slots=True)
class AcceptanceFigure:
    """Acceptance in one domain, or over all, at one temperature.

    Attributes:
        domain: "all" for the whole.
        acceptance: mean over the tokens.
        length: mean accepted length to expect at K = 4; None where every text was shorter than that.
        tokens, texts: how many it is the mean of.
    """

    domain: str
    temperature: float
    acceptance: float
    length: float | None
    tokens: int
    texts: int


def figures(measured: Iterable[tuple[str, float, Rates]]) -> list[AcceptanceFigure]:
    """A figure for each domain in the order of their first text, then one over all, for each temperature.

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


def score_texts(
    samples: Sequence[TeacherText],
    target: Scorer,
    draft: Scorer,
    tokens: NDArray[np.int32] | None,
    on_text: Callable[[int], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[AcceptanceFigure]:
    """Score texts that the target wrote by both models.

    Args:
        samples: each counts at the temperature that it was drawn at; their rows are not looked at.
        draft: takes target ids, gives rows over its own.
        tokens: see `acceptance`.
        on_text: told how many texts are done.
        cancelled: asked at every text; true ends with the texts done.
    """
    measured = []
    for done, sample in enumerate(samples):
        if cancelled():
            break
        # The first row is the one after the prompt; the last token is only predicted.
        ids = [int(i) for i in (*sample.prompt_ids, *sample.token_ids[:-1])]
        rows = len(sample.token_ids)
        rates = acceptance(target.score(ids, rows), draft.score(ids, rows), tokens, sample.temperature)
        measured.append((sample.domain, sample.temperature, rates))
        on_text(done + 1)
    return figures(measured)


def acceptance_of_sample(logits: Logits, sample: TeacherText, vocabulary: DraftVocabulary) -> Rates:
    """`acceptance` from what is kept of the target's rows: exact at temperature 0, at most a little low above it.

    Args:
        logits: (L, Vq) the draft's.
        sample: drawn at temperature 0, or at one of `SOFT_TEMPERATURES`.
    """
    if sample.temperature == 0:
        best = vocabulary.tokens[np.argmax(logits, axis=1)]
        return np.asarray(best == sample.token_ids, dtype=np.float64)
    soft = SOFT_TEMPERATURES.index(sample.temperature)
    p = np.exp(sample.rows.logprobs / sample.temperature - sample.rows.log_sums[:, soft : soft + 1])
    own = draft_ids(vocabulary)[sample.rows.ids]
    scaled = (logits / sample.temperature).astype(np.float64)
    scaled -= scaled.max(axis=1, keepdims=True)
    q = np.exp(scaled)
    q /= q.sum(axis=1, keepdims=True)
    shared = np.minimum(p, np.take_along_axis(q, np.maximum(own, 0), axis=1))
    rates: Rates = np.where(own >= 0, shared, 0.0).sum(axis=1)
    return rates


def quick(samples: Sequence[TeacherText], draft: Scorer, vocabulary: DraftVocabulary) -> list[AcceptanceFigure]:
    """`score_texts` without the target: while training."""
    measured = []
    for sample in samples:
        ids = [int(i) for i in (*sample.prompt_ids, *sample.token_ids[:-1])]
        rates = acceptance_of_sample(draft.score(ids, len(sample.token_ids)), sample, vocabulary)
        measured.append((sample.domain, sample.temperature, rates))
    return figures(measured)
