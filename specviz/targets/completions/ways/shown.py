"""Probabilities to show, from the few log-probabilities of a row. `generating` and `prefixes` decide without."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specviz.core.events import Alternative
from specviz.core.ports import Tokenizer
from specviz.core.settings import Sampling
from specviz.targets.completions.values import Findings, ScoredToken
from specviz.targets.completions.ways.knowledge import know


@dataclass(frozen=True, slots=True)
class Lens:
    """How to read rows of generated tokens.

    Attributes:
        sampling: the settings that the tokens were drawn at.
        raw: the log-probabilities are those before temperature, top-k and top-p.
        drawn: the log-probabilities are those of the distribution that the tokens were drawn from.
    """

    sampling: Sampling
    raw: bool
    drawn: bool
    vocab_size: int
    tokenizer: Tokenizer

    @classmethod
    def of(cls, findings: Findings, sampling: Sampling, vocab_size: int, tokenizer: Tokenizer) -> Lens:
        """Rows at temperature 0 are raw everywhere. At temperature 1 without top-k and top-p, both kinds are equal."""
        after, plain = findings.after_temperature, sampling.top_k == 0 and sampling.top_p >= 1.0
        same = sampling.temperature == 1 and plain
        raw = after is False or sampling.temperature == 0 or same
        return cls(sampling, raw, same or (after is True and plain and not raw), vocab_size, tokenizer)

    def logprob(self, row: ScoredToken | None, token_id: int) -> float | None:
        """Natural log of a token's untempered probability, where the row has it."""
        return _value(row, token_id) if self.raw else None

    def prob(self, row: ScoredToken | None, own_id: int, token_id: int) -> float | None:
        """Probability of a token after the settings, where it is known for certain.

        Args:
            own_id: the token that the target drew; at temperature 0 its probability is 1, and all others have 0.
        """
        if self.sampling.temperature == 0:
            return float(token_id == own_id)
        value = _value(row, token_id) if self.drawn else None
        return None if value is None else min(1.0, math.exp(value))

    def alternatives(self, row: ScoredToken | None, own_id: int) -> tuple[Alternative, ...]:
        """The most probable tokens of the row, with their probabilities as well as so few tokens give them."""
        if row is None or not self.raw:
            return ()
        best = [(t.token_id, t.logprob) for t in row.top if t.token_id is not None and t.token_id < self.vocab_size]
        probs = self._probs(best, own_id)
        return tuple(
            Alternative(token_id, self.tokenizer.token_name(token_id), logprob, p)
            for (token_id, logprob), p in zip(best, probs, strict=True)
        )

    def _probs(self, best: Sequence[tuple[int, float]], own_id: int) -> list[float]:
        """(n,) after the sampling settings; without top-k and top-p where it is not certain which tokens they keep."""
        if self.sampling.temperature == 0:
            return [float(token_id == own_id) for token_id, _ in best]
        ids, logprobs = [i for i, _ in best], [value for _, value in best]
        known = know(ids, logprobs, self.sampling, self.vocab_size) or know(
            ids, logprobs, Sampling(self.sampling.temperature), self.vocab_size
        )
        return [known.prob(*one) if known else 0.0 for one in best]


def _value(row: ScoredToken | None, token_id: int) -> float | None:
    if row is None:
        return None
    if row.token_id == token_id and row.logprob is not None:
        return row.logprob
    return next((t.logprob for t in row.top if t.token_id == token_id), None)
