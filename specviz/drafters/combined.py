"""n-gram lookup first, a model when there is no match, chosen for each token of a block."""

from __future__ import annotations

import time
from collections.abc import Sequence

from specviz.core.names import lookup_first
from specviz.core.noise import Noise
from specviz.core.ports import Follower, Step
from specviz.core.rounds import Draft, Explain
from specviz.core.settings import Sampling
from specviz.drafters.block import Drafted, DraftNext, draft_of, grow, steps_of
from specviz.drafters.lookup import Lookup
from specviz.drafters.model import ModelDrafter

#: A match of a single token predicts the next token worse than a model does. One, two and three were compared in
#: a simulation on answers to the held-out prompts of `specviz.distill`, with an early state of the shipped draft.
SHORTEST = 2


class CombinedDrafter:
    """Copies tokens once n-gram lookup has found a match; until then the model draws them.

    Each token keeps its own q: one-hot for a copied token, the model's q for a drawn one. A copied token has no
    log-probability and no entropy, which distinguishes the two in a recording.

    Args:
        model: draws the other tokens. It gets the whole context in each call, so its cache needs no other updates.
        longest, shortest: maximum and minimum number of tokens that must match.
        stop_ids: a draft ends with the first of these.
        lookup_confidence: the estimated probability that a copied token is kept; the model's `min_confidence` ends a
            draft at copied tokens too.
    """

    def __init__(
        self,
        model: ModelDrafter,
        *,
        longest: int = 4,
        shortest: int = SHORTEST,
        stop_ids: frozenset[int] = frozenset(),
        lookup_confidence: float = 0.9,
    ) -> None:
        self.name, self.engine = lookup_first(model.name), model.engine
        # No limit: when the model's context is full, tokens may still be copied.
        self.max_context: int | None = None
        self._model, self._lookup = model, Lookup(longest, shortest)
        self._stop_ids, self._lookup_confidence = stop_ids, lookup_confidence

    def propose(
        self,
        context_ids: Sequence[int],
        k: int,
        sampling: Sampling,
        noise: Noise,
        n: int = 1,
        explain: Explain = 2,
    ) -> Draft:
        """One candidate of at most k tokens.

        Shorter when a stop token is drafted, when the confidence falls below `min_confidence`, and when the model's
        context is full and there is nothing to copy (then `note` says so).
        """
        note, rng = "", self._model.stream(noise, sampling)

        def draw_next(ids: Sequence[int], reached: float | None) -> Drafted | None:
            nonlocal note
            note = self._model.full(ids)
            return None if note else self._model.draw_next(ids, sampling, rng, reached, explain)

        block = grow(context_ids, k, self._stop_ids, self._copy_first(draw_next))
        return draft_of(self.name, block, note)

    def follow(self, ids: Sequence[int], start: int, sampling: Sampling) -> Follower:
        """What it would draft along a text, from batched passes of the model over it."""
        text = list(ids)
        draw_next = self._model.following(text, start, sampling)

        def steps(at: int, k: int) -> list[Step]:
            return steps_of(grow(text[: start + at], k, self._stop_ids, self._copy_first(draw_next), text))

        return steps

    def _copy_first(self, draw_next: DraftNext) -> DraftNext:
        """For one block: the model draws until the lookup finds a match; from there the block is copied to its end."""
        source: int | None = None

        def draft_next(ids: Sequence[int], reached: float | None) -> Drafted | None:
            nonlocal source
            began = time.perf_counter()
            if source is None:
                source = self._lookup.find(ids)
            if source is None:
                return draw_next(ids, reached)
            source += 1
            return self._copy(ids[source - 1], began, reached)

        return draft_next

    def _copy(self, token_id: int, began: float, reached: float | None) -> Drafted | None:
        # The copied token depends only on earlier tokens, so ending the draft here keeps the output exact.
        if reached is not None and reached * self._lookup_confidence < self._model.min_confidence:
            return None
        return Drafted.copy(token_id, (time.perf_counter() - began) * 1000, self._lookup_confidence)

    def reset(self) -> None:
        """Forget the model's cache."""
        self._model.reset()
