"""The most probable tokens of a row, as events carry them."""

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


def weighed_of(
    decided: Sequence[int],
    target_best: Sequence[Alternative],
    draft_best: Sequence[Alternative],
    q: Row | None,
    prob: Callable[[int], float | None],
    tokenizer: Tokenizer,
) -> tuple[Weighed, ...]:
    """The tokens that a decision was between: those that it was about, then the most probable ones of both sides.

    Tokens that neither side could give at these settings are left out.

    Args:
        decided: the draft token and the final one.
        draft_best: the draft's; where it names none, the best of `q` itself.
        q: what the draft token was drawn from; None where there was no draft.
        prob: a token's p; None where it is not known.
    """
    names = {a.token_id: a.token for a in (*target_best, *draft_best)}
    likely = [a.token_id for a in draft_best] or (best_of(q) if q else [])
    ids = dict.fromkeys((*decided, *(a.token_id for a in target_best), *likely))
    known = ((i, prob(i), q.prob(i) if q else None) for i in ids)
    possible = [(i, p, qi) for i, p, qi in known if p != 0 or (qi or 0) > 0][:WEIGHED]
    return tuple(Weighed(i, names[i] if i in names else tokenizer.token_name(i), p, qi) for i, p, qi in possible)


def best_of(row: Row) -> list[int]:
    """Ids of a row's most probable tokens, best first, ties by id; those of probability 0 are never among them."""
    with np.errstate(divide="ignore"):
        best = top_ids(np.log(row.probs).astype(np.float32), TOP)
    return best if row.ids is None else [int(i) for i in row.ids[best]]
