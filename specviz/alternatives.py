"""The most probable tokens of a row, as events carry them."""

from __future__ import annotations

from specviz.events import Alternative
from specviz.ports import Tokenizer
from specviz.sampling import Ids, Logits, Row, RowSummary, top_ids

TOP = 10


def alternatives_of(
    logits: Logits, summary: RowSummary, probs: Row, tokenizer: Tokenizer, tokens: Ids | None = None
) -> tuple[Alternative, ...]:
    """The ten most probable tokens: untempered log-probability, and probability after the sampling settings.

    Args:
        logits: (V,) one row. probs: the same row after the sampling settings, by token id.
        tokens: (V,) the token id of each logit; None where they are the same.
    """
    best = top_ids(logits, TOP)
    ids = best if tokens is None else [int(i) for i in tokens[best]]
    return tuple(
        Alternative(token, tokenizer.token_name(token), float(logits[i]) - summary.log_normaliser, probs.prob(token))
        for token, i in zip(ids, best, strict=True)
    )
