"""Which of the target's tokens a draft has, and what it reads in place of the others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from specviz.engines.distilled import DraftVocabulary

Floats = NDArray[np.float32]
Int32s = NDArray[np.int32]
Counts = NDArray[np.int64]
_CHUNK = 4096


def count(texts: Iterable[NDArray[np.int32]], target_tokens: int) -> Counts:
    """How often each id occurs in the texts: (target tokens,)."""
    counts = np.zeros(target_tokens, dtype=np.int64)
    for ids in texts:
        counts += np.bincount(ids, minlength=target_tokens)
    return counts


def choose(counts: Counts, size: int, always: Iterable[int], embeddings: Floats | None = None) -> DraftVocabulary:
    """The most frequent ids, ties by id, and those that are always kept; an id that does not occur is left out.

    A token that is not kept is read as the kept token with the largest cosine of their rows in the target's embedding;
    without an embedding, as the most frequent token.

    Args:
        counts: (target tokens,) see `count`.
        size: how many ids are kept, at most.
        always: ids that are kept whatever their count is: stop tokens and special tokens.
        embeddings: (at least target tokens, width).
    """
    must = np.unique(np.fromiter(always, dtype=np.int64))
    score = counts.copy()
    score[must] = counts.max(initial=0) + 1
    size = max(min(size, int(np.count_nonzero(score))), len(must))
    best = np.argsort(-score, kind="stable")[:size]
    tokens = np.sort(best).astype(np.int32)
    if embeddings is None:
        inputs = np.full(len(counts), np.searchsorted(tokens, int(np.argmax(counts))), dtype=np.int32)
    else:
        inputs = _nearest(embeddings[: len(counts)], tokens)
    inputs[tokens] = np.arange(len(tokens), dtype=np.int32)
    return DraftVocabulary(tokens, inputs)


def coverage(counts: Counts, vocabulary: DraftVocabulary) -> float:
    """The share of counted tokens that the draft has."""
    return float(counts[vocabulary.tokens].sum() / max(1, counts.sum()))


def draft_ids(vocabulary: DraftVocabulary) -> Int32s:
    """(target tokens,) the draft id of each target id, -1 for those that the draft does not have."""
    ids = np.full(len(vocabulary.inputs), -1, dtype=np.int32)
    ids[vocabulary.tokens] = np.arange(len(vocabulary.tokens), dtype=np.int32)
    return ids


def _nearest(embeddings: Floats, tokens: Int32s) -> Int32s:
    """(rows,) for each row the index in `tokens` of the kept row with the largest cosine."""
    unit = embeddings / np.maximum(np.linalg.norm(embeddings, axis=1, keepdims=True), 1e-12)
    kept = unit[tokens].T
    parts = [np.argmax(unit[at : at + _CHUNK] @ kept, axis=1) for at in range(0, len(unit), _CHUNK)]
    return np.concatenate(parts).astype(np.int32)
