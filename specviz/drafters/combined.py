"""n-gram lookup first, a model where there is nothing to copy: token by token, in one block."""

from __future__ import annotations

import time
from collections.abc import Sequence

from specviz.core.names import lookup_first
from specviz.core.noise import Noise
from specviz.core.ports import Draft, Follower, Step
from specviz.core.settings import Sampling
from specviz.drafters.block import Drafted, DraftNext, draft_of, grow, steps_of
from specviz.drafters.lookup import Lookup
from specviz.drafters.model import ModelDrafter

#: A match of a single token says less about what follows than a model does. One, two and three were compared in
#: a simulation on answers to the held-out prompts of `specviz.distill`, with an early state of the shipped draft.
SHORTEST = 2


class CombinedDrafter:
    """Copies while the lookup has something to copy, and lets the model draw where it has not.

    Each token keeps its own q: one-hot for a copy, the model's own for a draw. A copy has no log-probability and no
    entropy, which tells the two apart in a recording.

    Args:
        model: draws the other tokens. It is given the whole context each time, so that its cache follows by itself.
        longest, shortest: tokens that must match, at most and at least.
        stop_ids: a draft ends with the first of these.
        lookup_confidence: the estimated chance that a copied token is kept; counts towards the model's
            `min_confidence`, which ends copies too.
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
        self.name = lookup_first(model.name)
        # A full model ends nothing: there may still be something to copy.
        self.max_context: int | None = None
        self._model, self._lookup = model, Lookup(longest, shortest)
        self._stop_ids, self._lookup_confidence = stop_ids, lookup_confidence

    def propose(self, context_ids: Sequence[int], k: int, sampling: Sampling, noise: Noise, n: int = 1) -> Draft:
        """One candidate of at most k tokens.

        Shorter when a stop token is drafted, when the draft is no longer sure, and when the model's context is full
        and there is nothing to copy: then `note` says so.
        """
        note, rng = "", noise.draft()

        def draw_next(ids: Sequence[int], reached: float | None) -> Drafted | None:
            nonlocal note
            note = self._model.full(ids)
            return None if note else self._model.draw_next(ids, sampling, rng, reached)

        block = grow(context_ids, k, self._stop_ids, self._copy_first(draw_next))
        return draft_of(self.name, block, note)

    def follow(self, ids: Sequence[int], start: int, sampling: Sampling) -> Follower:
        """What it would draft along a text, from one batched pass of the model over it."""
        text = list(ids)
        draw_next = self._model.following(text, start, sampling)

        def steps(at: int, k: int) -> list[Step]:
            return steps_of(grow(text[: start + at], k, self._stop_ids, self._copy_first(draw_next), text))

        return steps

    def _copy_first(self, draw_next: DraftNext) -> DraftNext:
        """For one block: what is found is copied to the end of it, and the model goes on as long as nothing is."""
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
        # What is copied depends on earlier tokens alone, so ending the draft here keeps the output exact.
        if reached is not None and reached * self._lookup_confidence < self._model.min_confidence:
            return None
        return Drafted.copy(token_id, (time.perf_counter() - began) * 1000, self._lookup_confidence)

    def reset(self) -> None:
        """Forget the model's cache."""
        self._model.reset()
