"""The replacement of a rejected token, from the most probable tokens of the row and from samples of the target.

The docstring of `knowledge` has the algorithm and the bound on its error.
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

#: Samples in the first request for a position, and in any request: what servers accept with their default limits.
FIRST, MOST = 32, 128
#: The most samples for one position. Where r is 1, a tested position needs one sample on average. So by Markov's
#: inequality the limit changes the distribution by at most 1/LIMIT, less than the rounding of log-probabilities.
LIMIT = 500_000


@dataclass(frozen=True, slots=True)
class TargetSample:
    """A token that the target drew; `logprob` is its log-probability at temperature 1, None where it is not known."""

    token_id: int
    logprob: float | None = None


@dataclass(slots=True)
class OwnSamples:
    """Independent samples of the target after one context, requested in batches.

    Attributes:
        ask: requests n samples. used: how many were taken from here.
    """

    ask: Callable[[int], list[TargetSample]]
    used: int = 0
    _waiting: deque[TargetSample] = field(default_factory=deque)
    _last: int = 0

    def next(self, share: float = 1.0) -> TargetSample:
        """The next sample.

        Args:
            share: of all samples, those that are suitable. A batch most likely has a suitable one.
        """
        if not self._waiting:
            size = min(MOST, 2 * self._last) if self._last else FIRST
            # With 3/share samples, the probability that none of them is suitable is e⁻³.
            size = min(size, ceil(3 / share)) if share < 1 else 1
            self._waiting.extend(self.ask(size))
            self._last = size
        self.used += 1
        return self._waiting.popleft()


def refill(
    known: Known, q: Row | None, own: OwnSamples, rng: np.random.Generator, refused: float = 0.0
) -> TargetSample:
    """A draw from norm((p - q)⁺), or from p where there is no q; as exact as p̂ is.

    Args:
        refused: q(x) - p̂(x) of the rejected token, if there is one; each look succeeds at least with this probability.

    Raises:
        AnswerError: the samples contradict the row that the server gave.
    """
    weights = left(known, q)
    inside = float(weights.sum())
    if inside + known.tail == 0:
        return own.next()
    looks = known.looks(refused)
    for _ in range(looks):
        if known.tail == 0 or rng.random() * (inside + known.tail) < inside:
            return TargetSample(int(known.ids[draw(weights, rng)]))
        # If P is empty, every sample lies outside P, and a sample is suitable if it passes.
        sample = _outside(known, own, known.tail if len(known.ids) else min(1.0, max(refused, 1 / FIRST)))
        if q is None or rng.random() < passes(known.prob(sample.token_id, sample.logprob), q.prob(sample.token_id)):
            return sample
        if own.used >= LIMIT:
            return own.next()
    if known.refutes(refused):
        raise _contradiction(f"a draft token was rejected, but none of {looks} samples can replace it")
    return own.next()


def _outside(known: Known, own: OwnSamples, share: float) -> TargetSample:
    """The next sample that is not in P; after many samples in P, the next one wherever it lies."""
    best = set(known.ids.tolist())
    for _ in range(known.patience):
        sample = own.next(share)
        if sample.token_id not in best:
            return sample
    if known.refutes(known.tail):
        raise _contradiction(
            f"{known.tail:.1%} of them should be outside its {len(best)} best tokens, but none of {known.patience} was"
        )
    return own.next()


def _contradiction(what: str) -> AnswerError:
    return AnswerError(
        f"The server's samples do not fit its log-probabilities: {what}.",
        "The server may apply sampling settings of its own (top_k, top_p, min_p, penalties). Switch them off there, or "
        "verify by prefixes.",
    )
