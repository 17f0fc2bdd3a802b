"""A token in place of a refused one, from the row's best tokens and samples of the target's own.

The algorithm and what it may cost are at the head of `knowledge`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from specviz.core.errors import AnswerError
from specviz.core.sampling import Row, draw
from specviz.targets.completions.ways.knowledge import Known, left, passes

#: Samples in the first request for a position, and in any: what servers take without being asked to raise a limit.
FIRST, MOST = 32, 128
#: Samples for one position, at most. Where r is 1 a tested position needs one on average, so by Markov's inequality
#: what this changes is at most 1 in LIMIT, less than what log-probabilities are rounded to.
LIMIT = 500_000


@dataclass(frozen=True, slots=True)
class TargetSample:
    """A token that the target drew by itself; `logprob` is its own at temperature 1, where it can be known."""

    token_id: int
    logprob: float | None = None


@dataclass(slots=True)
class OwnSamples:
    """Independent samples of the target's behind one context, asked for in batches.

    Attributes:
        ask: n → n samples. used: how many were looked at.
    """

    ask: Callable[[int], list[TargetSample]]
    used: int = 0
    _waiting: deque[TargetSample] = field(default_factory=deque)
    _last: int = 0

    def next(self, share: float = 1.0) -> TargetSample:
        """One more, as the target drew it.

        Args:
            share: of the samples that will do; a batch is large enough that one of it most likely does.
        """
        if not self._waiting:
            size = min(MOST, 2 * self._last) if self._last else FIRST
            # Three times 1/share: with e⁻³ none of the batch will do.
            size = min(size, ceil(3 / share)) if share < 1 else 1
            self._waiting.extend(self.ask(size))
            self._last = size
        self.used += 1
        return self._waiting.popleft()


def refill(
    known: Known, q: Row | None, own: OwnSamples, rng: np.random.Generator, refused: float = 0.0
) -> TargetSample:
    """A draw from norm((p - q)⁺), or from p where there is no q; exact as far as p̂ is.

    Args:
        refused: q(x) - p̂(x) of the token that was refused, if one was: a look ends at least with this probability.

    Raises:
        AnswerError: the samples cannot come from the row that the server told.
    """
    weights = left(known, q)
    inside = float(weights.sum())
    if inside + known.tail == 0:
        return own.next()
    looks = known.looks(refused)
    for _ in range(looks):
        if known.tail == 0 or rng.random() * (inside + known.tail) < inside:
            return TargetSample(int(known.ids[draw(weights, rng)]))
        # Without a P every sample lies outside, and what decides is whether it passes.
        sample = _outside(known, own, known.tail if len(known.ids) else min(1.0, max(refused, 1 / FIRST)))
        if q is None or rng.random() < passes(known.prob(sample.token_id, sample.logprob), q.prob(sample.token_id)):
            return sample
        if own.used >= LIMIT:
            return own.next()
    if known.refutes(refused):
        raise _contradiction(f"a draft token was refused for being too probable, and none of {looks} samples is rarer")
    return own.next()


def _outside(known: Known, own: OwnSamples, share: float) -> TargetSample:
    """The next own sample that is none of P; after many, one that may be."""
    best = set(known.ids.tolist())
    for _ in range(known.patience):
        sample = own.next(share)
        if sample.token_id not in best:
            return sample
    if known.refutes(known.tail):
        raise _contradiction(
            f"{known.tail:.1%} should be none of its {len(best)} best tokens, and of {known.patience} none was"
        )
    return own.next()


def _contradiction(what: str) -> AnswerError:
    return AnswerError(
        f"The server's samples do not fit its log-probabilities: {what}.",
        "It may apply sampling settings of its own (top_k, top_p, min_p, penalties): switch them off there, or verify "
        "by prefixes.",
    )
