"""A language model as drafter, one token at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from specviz.alternatives import alternatives_of
from specviz.ports import Proposal, Scorer, Tokenizer
from specviz.sampling import Row, draw_from, summarise
from specviz.settings import Sampling


class ModelDrafter:
    """Draws each token from the draft model's own q, after the run's sampling settings.

    Args:
        name: as the catalog knows it.
        scorer: the model with its cache.
        tokenizer: names the alternatives.
        max_context: tokens that the draft model can see; None for no limit.
        vocab_limit: ids at or beyond it are never proposed (the target would not know them).
        stop_ids: a draft ends with the first of these.
    """

    def __init__(
        self,
        name: str,
        scorer: Scorer,
        tokenizer: Tokenizer,
        *,
        max_context: int | None = None,
        vocab_limit: int | None = None,
        stop_ids: frozenset[int] = frozenset(),
    ) -> None:
        self.name, self.max_context = name, max_context
        self._scorer, self._tokenizer = scorer, tokenizer
        self._vocab_limit, self._stop_ids = vocab_limit, stop_ids

    def propose(
        self, context_ids: Sequence[int], k: int, sampling: Sampling, rng: np.random.Generator, n: int = 1
    ) -> list[Proposal]:
        """One candidate of at most k tokens.

        Shorter when the draft draws a stop token, and when its context is full: then `note` says so.
        """
        room = k if self.max_context is None else min(k, self.max_context - len(context_ids))
        note = "" if room >= k else f"The draft model's context of {self.max_context} tokens is full."
        ids = list(context_ids)
        tokens: list[int] = []
        q: list[Row] = []
        logprobs: list[float] = []
        entropies: list[float] = []
        alternatives = []
        times: list[float] = []
        for _ in range(max(0, room)):
            began = time.perf_counter()
            logits = self._scorer.score(ids, 1)[0]
            if self._vocab_limit is not None:
                logits = logits[: self._vocab_limit]
            token, row = draw_from(logits, sampling, rng)
            summary = summarise(logits)
            alternatives.append(alternatives_of(logits, summary, row, self._tokenizer))
            tokens.append(token)
            q.append(row)
            logprobs.append(float(logits[token]) - summary.log_normaliser)
            entropies.append(summary.entropy_bits)
            ids.append(token)
            times.append((time.perf_counter() - began) * 1000)
            if token in self._stop_ids:
                break
        return [
            Proposal(
                tuple(tokens), tuple(q), tuple(logprobs), tuple(entropies), tuple(alternatives), tuple(times), note
            )
        ]

    def reset(self) -> None:
        """Forget the draft model's cache."""
        self._scorer.reset()
