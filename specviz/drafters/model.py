"""A language model as a drafter, one token at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from specviz.core.alternatives import alternatives_of
from specviz.core.noise import Noise
from specviz.core.ports import Follower, Scorer, Tokenizer
from specviz.core.rounds import Draft, Explain
from specviz.core.sampling import Ids, Logits, Row, draw_row, expected_acceptance, most_probable, row_of, summarise
from specviz.core.settings import K_MAX, Sampling
from specviz.core.text_rows import TextRows
from specviz.drafters.block import Drafted, DraftNext, draft_of, grow, steps_of

#: Number of rows cached while following a text: enough for the blocks that are read together.
_ROWS = 2 * K_MAX


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """The output of the draft model after a context.

    Attributes:
        logits: over the columns of the draft model. best: the most probable column. tokens: the target ids of the
            columns; None if they are the same.
        q: over the columns; at temperature 0, where nothing is drawn from it, the same as `row`.
        row: q over the target's ids.
        confidence: see `Drafted`.
    """

    logits: Logits
    best: int
    tokens: Ids | None
    q: Row
    row: Row
    confidence: float


class ModelDrafter:
    """Draws each token from the draft model's own q, after the run's sampling settings.

    Args:
        name: in the catalog.
        scorer: the model with its cache; takes the target's ids.
        tokenizer: for the names of alternatives, by the target's ids.
        tokens: (V,) the target id of each column of the scorer's rows, ascending; None if they are the same. Other ids
            have q = 0: they are never proposed, and only the target can emit them.
        max_context: maximum context of the draft model in tokens; None for no limit.
        vocab_limit: ids at or above it are never proposed, because the target does not have them.
        stop_ids: a draft ends with the first of these.
        min_confidence: a draft ends before a token whose estimated probability of being reached and kept is below this;
            0 disables it.
        engine: what runs the model, for the record.
    """

    def __init__(
        self,
        name: str,
        scorer: Scorer,
        tokenizer: Tokenizer,
        *,
        tokens: Ids | None = None,
        max_context: int | None = None,
        vocab_limit: int | None = None,
        stop_ids: frozenset[int] = frozenset(),
        min_confidence: float = 0.0,
        engine: str = "",
    ) -> None:
        self.name, self.max_context, self.min_confidence, self.engine = name, max_context, min_confidence, engine
        self._scorer, self._tokenizer, self._tokens = scorer, tokenizer, tokens
        self._vocab_limit, self._stop_ids = vocab_limit, stop_ids

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

        Shorter when the draft draws a stop token, when the confidence falls below `min_confidence`, and when the
        context of the draft model is full (then `note` says so).
        """
        note, rng = "", self.stream(noise, sampling)

        def draft_next(ids: Sequence[int], reached: float | None) -> Drafted | None:
            nonlocal note
            note = self.full(ids)
            return None if note else self.draw_next(ids, sampling, rng, reached, explain)

        block = grow(context_ids, k, self._stop_ids, draft_next)
        return draft_of(self.name, block, note)

    def stream(self, noise: Noise, sampling: Sampling) -> np.random.Generator | None:
        """What a candidate is drawn from; None at temperature 0, where nothing is drawn."""
        return noise.draft() if sampling.temperature > 0 else None

    def full(self, ids: Sequence[int]) -> str:
        """Why the draft model cannot continue from here, as a sentence for the user; empty while it can."""
        if self.max_context is None or len(ids) < self.max_context:
            return ""
        return f"The draft model's context of {self.max_context} tokens is full."

    def draw_next(
        self,
        ids: Sequence[int],
        sampling: Sampling,
        rng: np.random.Generator | None,
        reached: float | None,
        explain: Explain,
    ) -> Drafted | None:
        """Draw one more token; None, without a draw, if its estimated probability of being kept is too low.

        Whether a draft ends here may depend only on the tokens before this one and on q. Dropping a token because of
        its value would make the other tokens more likely than q says, and the output would no longer be the target's
        own.

        Args:
            ids: the whole context and the draft so far; must fit the context of the draft model (see `full`).
            rng: see `stream`.
            reached: the estimated probability that all of the draft so far is kept; None for the first token of a
                block, which is always drafted, because an empty draft saves nothing.
            explain: see `specviz.core.rounds.Explain`.
        """
        began = time.perf_counter()
        seen = self._decide(reached, lambda: self._look(self._scorer.score(ids, 1)[0], sampling))
        if seen is None:
            return None
        at = seen.best if rng is None else draw_row(seen.q, rng)
        summary = summarise(seen.logits, seen.best, entropy=explain == 2)
        best = alternatives_of(seen.logits, summary, seen.row, self._tokenizer, seen.tokens) if explain == 2 else ()
        return Drafted(
            token_id=at if seen.tokens is None else int(seen.tokens[at]),
            q=seen.row,
            confidence=seen.confidence,
            logprob=float(seen.logits[at]) - summary.log_normaliser,
            entropy=summary.entropy_bits,
            alternatives=best,
            time_ms=(time.perf_counter() - began) * 1000,
        )

    def _decide(self, reached: float | None, look: Callable[[], _Seen]) -> _Seen | None:
        """The output of the model for the next token; None if that token is too unlikely to be reached and kept.

        Args:
            look: costs a pass of the model; not called if `reached` alone is already below `min_confidence`.
        """
        if reached is not None and reached < self.min_confidence:
            return None
        seen = look()
        return None if reached is not None and reached * seen.confidence < self.min_confidence else seen

    def _look(self, logits: Logits, sampling: Sampling) -> _Seen:
        tokens = self._tokens
        if self._vocab_limit is not None:
            width = self._vocab_limit if tokens is None else int(np.searchsorted(tokens, self._vocab_limit))
            logits, tokens = logits[:width], tokens if tokens is None else tokens[:width]
        best = most_probable(logits)
        if sampling.temperature == 0:
            q = row = Row.one_hot(best if tokens is None else int(tokens[best]))
        else:
            q = row_of(logits, sampling, best)
            # Ascending token ids make the row over the draft's own tokens a sparse row over the target's.
            row = q if tokens is None else Row(q.probs, tokens if q.ids is None else tokens[q.ids])
        confidence = expected_acceptance(logits, q) if self.min_confidence > 0 else 1.0
        return _Seen(logits, best, tokens, q, row, confidence)

    def follow(self, ids: Sequence[int], start: int, sampling: Sampling) -> Follower:
        """What it would draft along a text, from batched passes over it."""
        text = list(ids)
        follow_next = self.following(text, start, sampling)
        return lambda at, k: steps_of(grow(text[: start + at], k, self._stop_ids, follow_next, text))

    def following(self, text: Sequence[int], start: int, sampling: Sampling) -> DraftNext:
        """`draw_next` along a text without drawing: the token is the text's own, or the single token of q."""
        rows = TextRows(self._scorer, text[: self.max_context], start)

        @lru_cache(maxsize=_ROWS)
        def seen_behind(count: int) -> _Seen:
            return self._look(rows.behind(count), sampling)

        def follow_next(ids: Sequence[int], reached: float | None) -> Drafted | None:
            if self.full(ids):
                return None
            seen = self._decide(reached, lambda: seen_behind(len(ids)))
            if seen is None:
                return None
            only = seen.row.ids is not None and len(seen.row.ids) == 1
            token = int(seen.row.ids[0]) if seen.row.ids is not None and only else text[len(ids)]
            return Drafted(token, seen.row, seen.confidence, 0.0)

        return follow_next

    def reset(self) -> None:
        """Forget the draft model's cache."""
        self._scorer.reset()
