"""Prompt lookup: copy what followed the last time the text read like this.

Costs next to nothing and needs no model (Saxena 2023, "Prompt Lookup Decoding"). Pays on summaries, corrections and
code, where the output repeats the prompt or itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from specviz.errors import SettingsError
from specviz.ports import NO_PROPOSAL, Proposal
from specviz.sampling import Row
from specviz.settings import Sampling


class NgramDrafter:
    """Looks the end of the context up in the context itself, longest match first, the most recent among equals.

    Args:
        longest, shortest: tokens that must match, at most and at least.
        stop_ids: a draft ends with the first of these: nothing behind an end of turn can be kept.
    """

    def __init__(self, longest: int = 4, shortest: int = 1, stop_ids: frozenset[int] = frozenset()) -> None:
        if not 1 <= shortest <= longest:
            raise SettingsError(f"n-gram lengths must be 1 ≤ shortest ≤ longest, not {shortest} and {longest}.")
        self.name = "ngram"
        self.max_context: int | None = None
        self._longest, self._shortest, self._stop_ids = longest, shortest, stop_ids

    def propose(
        self, context_ids: Sequence[int], k: int, sampling: Sampling, rng: np.random.Generator, n: int = 1
    ) -> list[Proposal]:
        """One candidate of at most k copied tokens; empty when nothing matches. Its q is one-hot at any temperature."""
        began = time.perf_counter()
        tokens = self._continuation(context_ids, k)
        if not tokens:
            return [NO_PROPOSAL]
        each_ms = (time.perf_counter() - began) * 1000 / len(tokens)
        size = len(tokens)
        return [
            Proposal(
                token_ids=tuple(tokens),
                q=tuple(Row.one_hot(t) for t in tokens),
                logprobs=(None,) * size,
                entropies=(None,) * size,
                alternatives=((),) * size,
                times_ms=(each_ms,) * size,
            )
        ]

    def reset(self) -> None:
        """Nothing is kept between calls."""

    def _continuation(self, context_ids: Sequence[int], k: int) -> list[int]:
        source = self._match(np.asarray(context_ids, dtype=np.int64))
        if source is None:
            return []
        drafted: list[int] = []
        for at in range(source, source + k):
            # A match near the end runs into its own draft: a repeated phrase goes on repeating.
            token = int(context_ids[at]) if at < len(context_ids) else drafted[at - len(context_ids)]
            drafted.append(token)
            if token in self._stop_ids:
                break
        return drafted

    def _match(self, context: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int | None:
        """Index of the token that followed the best earlier match."""
        if len(context) < 2:
            return None
        ends = np.flatnonzero(context[:-1] == context[-1])
        best, length = None, 0
        for n in range(1, self._longest + 1):
            if n > 1:
                ends = ends[ends >= n - 1]
                ends = ends[context[ends - (n - 1)] == context[-n]] if n <= len(context) else ends[:0]
            if len(ends) == 0:
                break
            best, length = int(ends[-1]) + 1, n
        return best if length >= self._shortest else None
