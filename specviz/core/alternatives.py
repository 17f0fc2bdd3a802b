"""The most probable tokens of a row, in the form that events use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from specviz.core.events import Alternative, Weighed
from specviz.core.ports import Tokenizer
from specviz.core.sampling import Ids, Logits, Row, RowSummary, top_ids

TOP = 10
WEIGHED = 20


def alternatives_of(
    logits: Logits, summary: RowSummary, probs: Row, tokenizer: Tokenizer, tokens: Ids | None = None
) -> tuple[Alternative, ...]:
    """The ten most probable tokens: log-probability before temperature, and probability after the sampling settings.

    Args:
        logits: (V,) one row. probs: the same row after the sampling settings, by token id.
        tokens: (V,) the token id of each logit; None when the index is the token id.
    """
    best = top_ids(logits, TOP)
    ids = best if tokens is None else [int(i) for i in tokens[best]]
    values = zip(ids, logits[best].tolist(), probs.probs_of(ids), strict=True)
    return tuple(
        Alternative(token, tokenizer.token_name(token), logit - summary.log_normaliser, prob)
        for token, logit, prob in values
    )


def weighed_of(
    decided: Sequence[int],
    target_best: Sequence[Alternative],
    draft_best: Sequence[Alternative],
    q: Row | None,
    prob: Callable[[int], float | None],
    tokenizer: Tokenizer,
) -> tuple[Weighed, ...]:
    """The tokens weighed in a decision: the draft and final token, then the most probable tokens of both models.

    Tokens with probability 0 in both models at these settings are left out.

    Args:
        decided: the draft token and the final one.
        draft_best: the draft's most probable tokens; if empty, those of `q` are used.
        q: the distribution that the draft token was drawn from; None without a draft token.
        prob: gives a token's p; None when it is unknown.
    """
    names = {a.token_id: a.token for a in (*target_best, *draft_best)}
    likely = [a.token_id for a in draft_best] or (best_of(q) if q else [])
    ids = list(dict.fromkeys((*decided, *(a.token_id for a in target_best), *likely)))
    known = zip(ids, map(prob, ids), q.probs_of(ids) if q else [None] * len(ids), strict=True)
    possible = [(i, p, qi) for i, p, qi in known if p != 0 or (qi or 0) > 0][:WEIGHED]
    return tuple(Weighed(i, names[i] if i in names else tokenizer.token_name(i), p, qi) for i, p, qi in possible)


def best_of(row: Row) -> list[int]:
    """Ids of a row's most probable tokens, best first, ties by id; tokens of probability 0 are left out."""
    with np.errstate(divide="ignore"):
        best = top_ids(np.log(row.probs).astype(np.float32), TOP)
    return best if row.ids is None else [int(i) for i in row.ids[best]]
