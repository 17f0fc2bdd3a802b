"""Acceptance of a student on held-out texts that the target has written: see `specviz.core.acceptance`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from specviz.core.acceptance import AcceptanceFigure, figures, overlaps
from specviz.core.ports import Scorer
from specviz.core.sampling import Row, to_probs
from specviz.core.settings import Sampling
from specviz.distill.samples import SOFT_TEMPERATURES, TeacherText
from specviz.distill.vocabulary import Int32s, draft_ids
from specviz.engines.distilled import DraftVocabulary


def score_texts(
    samples: Sequence[TeacherText],
    target: Scorer,
    draft: Scorer,
    vocabulary: DraftVocabulary,
    on_text: Callable[[int], None] = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[AcceptanceFigure]:
    """Score each text by both models, in one pass each.

    Args:
        samples: each counts at the temperature that it was drawn at; their kept rows are not used.
        draft: takes target ids, gives rows over its own.
        on_text: called with the number of texts that are done.
        cancelled: called at every text; true ends the scoring with the texts that are done.
    """
    tokens, measured = vocabulary.tokens.astype(np.int64), []
    for done, sample in enumerate(samples):
        if cancelled():
            break
        ids, length, sampling = _inputs(sample), len(sample.token_ids), Sampling(sample.temperature)
        drafted = [Row(to_probs(row, sampling), tokens) for row in draft.score(ids, length)]
        measured.append((sample.domain, sample.temperature, overlaps(target.score(ids, length), drafted, sampling)))
        on_text(done + 1)
    return figures(measured)


def quick(samples: Sequence[TeacherText], draft: Scorer, vocabulary: DraftVocabulary) -> list[AcceptanceFigure]:
    """`score_texts` without the target, from the rows that are kept of it: exact at temperature 0, else a little low.

    Args:
        samples: drawn at temperature 0 or at one of `SOFT_TEMPERATURES`.
    """
    own, measured = draft_ids(vocabulary), []
    for sample in samples:
        logits = draft.score(_inputs(sample), len(sample.token_ids))
        rates = overlaps(logits, kept_rows(sample, own), Sampling(sample.temperature))
        measured.append((sample.domain, sample.temperature, rates))
    return figures(measured)


def kept_rows(sample: TeacherText, own: Int32s) -> Iterator[Row]:
    """The target's kept tokens at each position of a text, as rows over draft ids; they may sum to less than 1.

    Args:
        own: see `specviz.distill.vocabulary.draft_ids`.
    """
    if sample.temperature == 0:
        # The text is the target's most probable tokens.
        ids, probs = sample.token_ids[:, None], np.ones((len(sample.token_ids), 1))
    else:
        soft = SOFT_TEMPERATURES.index(sample.temperature)
        ids = sample.rows.ids
        probs = np.exp(sample.rows.logprobs / sample.temperature - sample.rows.log_sums[:, soft : soft + 1])
    for row_ids, row_probs in zip(own[ids], probs, strict=True):
        order = np.argsort(row_ids)[np.count_nonzero(row_ids < 0) :]  # -1, what the draft lacks, comes first
        yield Row(row_probs[order].astype(np.float64), row_ids[order].astype(np.int64))


def _inputs(sample: TeacherText) -> list[int]:
    """Prompt and text without the last token, which is predicted only."""
    return [int(i) for i in (*sample.prompt_ids, *sample.token_ids[:-1])]
