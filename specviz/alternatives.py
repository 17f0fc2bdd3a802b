"""The most probable tokens of a row, as events carry them."""

from __future__ import annotations

from specviz.events import Alternative
from specviz.ports import Tokenizer
from specviz.sampling import Logits, Row, RowSummary, top_ids

TOP = 10


def alternatives_of(logits: Logits, summary: RowSummary, probs: Row, tokenizer: Tokenizer) -> tuple[Alternative, ...]:
    """The ten most probable tokens: untempered log-probability, and probability after the sampling settings.

    Args:
        logits: (V,) one row. probs: the same row after the sampling settings.
    """
    return tuple(
        Alternative(i, tokenizer.token_name(i), float(logits[i]) - summary.log_normaliser, probs.prob(i))
        for i in top_ids(logits, TOP)
    )
