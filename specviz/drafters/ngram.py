"""Prompt lookup alone: copies the tokens that followed the last match."""

from __future__ import annotations

import time
from collections.abc import Sequence

from specviz.core.noise import Noise
from specviz.core.ports import Follower, Step
from specviz.core.rounds import Draft, Explain
from specviz.core.sampling import Row
from specviz.core.settings import Sampling
from specviz.drafters.block import Drafted, draft_of
from specviz.drafters.lookup import Lookup


class NgramDrafter:
    """Copies the continuation that `Lookup` finds.

    Args:
        longest, shortest: maximum and minimum number of tokens that must match.
        stop_ids: a draft ends with the first of these, because no token after a stop token can be kept.
    """

    def __init__(self, longest: int = 4, shortest: int = 1, stop_ids: frozenset[int] = frozenset()) -> None:
        self.name = "ngram"
        self.max_context: int | None = None
        self._lookup, self._stop_ids = Lookup(longest, shortest), stop_ids

    def propose(
        self,
        context_ids: Sequence[int],
        k: int,
        sampling: Sampling,
        noise: Noise,
        n: int = 1,
        explain: Explain = 2,
    ) -> Draft:
        """One candidate of at most k copied tokens; none without a match. Its q is one-hot at any temperature."""
        began = time.perf_counter()
        tokens = self._continuation(list(context_ids), k)
        each_ms = (time.perf_counter() - began) * 1000 / max(1, len(tokens))
        return draft_of(self.name, [Drafted.copy(token, each_ms) for token in tokens])

    def follow(self, ids: Sequence[int], start: int, sampling: Sampling) -> Follower:
        """The blocks that it proposes: they depend only on the context, and may reach beyond the text."""
        text = list(ids)

        def steps(at: int, k: int) -> list[Step]:
            return [Step(Row.one_hot(token), copied=True) for token in self._continuation(text[: start + at], k)]

        return steps

    def reset(self) -> None:
        """Nothing is kept between calls."""

    def _continuation(self, ids: list[int], k: int) -> list[int]:
        source = self._lookup.find(ids)
        if source is None:
            return []
        end = len(ids)
        for at in range(source, source + k):
            ids.append(ids[at])
            if ids[-1] in self._stop_ids:
                break
        return ids[end:]
