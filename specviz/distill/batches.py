"""Texts → batches: padded inputs in draft ids, and the rows to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specviz.distill.samples import FLOOR, TeacherText, stack_rows
from specviz.distill.vocabulary import draft_ids
from specviz.engines.distilled import DraftVocabulary

Int32s = NDArray[np.int32]

#: Tokens of a text that the student sees, prompt and answer; of a longer text the first ones are cut off.
LONGEST = 640
#: So many batches are made of texts sorted by length, so that little is padded.
_SORTED_TOGETHER = 16


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The data of one training step.

    Attributes:
        inputs: (B, L) draft ids, padded at the end.
        positions: (M,) indices into the flat (B·L,) outputs, of those that predict a token of the target's text.
        ids: (M, N) draft ids of the target's most probable tokens; 0 where the draft has none.
        logprobs: (M, N) their log-probabilities at temperature 1; `FLOOR` where the draft has none.
        log_sums: (M, temperatures) see `TeacherRows`.
    """

    inputs: Int32s
    positions: Int32s
    ids: Int32s
    logprobs: NDArray[np.float32]
    log_sums: NDArray[np.float32]


def plan(lengths: Sequence[int], batch_tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of one epoch, as indices of texts: every text once, in an order that seed and epoch decide.

    Args:
        lengths: of the texts.
        batch_tokens: of a batch, padding included, at most; a longer text is a batch of its own.
    """
    rng = np.random.default_rng((seed, epoch))
    order = [int(i) for i in rng.permutation(len(lengths))]
    mean = max(1.0, float(np.mean(lengths)))
    chunk = max(1, round(_SORTED_TOGETHER * batch_tokens / mean))
    batches: list[list[int]] = []
    for at in range(0, len(order), chunk):
        batches += _fill(sorted(order[at : at + chunk], key=lambda i: lengths[i]), lengths, batch_tokens)
    return [batches[int(i)] for i in rng.permutation(len(batches))]


def _fill(order: Sequence[int], lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    batches: list[list[int]] = []
    for i in order:
        # The texts are sorted: this one is the longest of its batch.
        if not batches or (len(batches[-1]) + 1) * lengths[i] > batch_tokens:
            batches.append([])
        batches[-1].append(i)
    return batches


class Collator:
    """Makes batches for one draft vocabulary."""

    def __init__(self, vocabulary: DraftVocabulary) -> None:
        self._inputs, self._own = vocabulary.inputs, draft_ids(vocabulary)

    def length(self, sample: TeacherText) -> int:
        """Length of a text as the student sees it, without the last token, which is predicted only."""
        return min(LONGEST, len(sample.prompt_ids) + len(sample.token_ids) - 1)

    def batch(self, samples: Sequence[TeacherText]) -> Batch:
        """These texts as one batch."""
        width = max(map(self.length, samples))
        inputs = np.zeros((len(samples), width), dtype=np.int32)
        positions, rows = [], []
        for i, sample in enumerate(samples):
            ids = np.concatenate([sample.prompt_ids, sample.token_ids])[:-1][-LONGEST:]
            inputs[i, : len(ids)] = self._inputs[ids]
            predicted = min(len(sample.token_ids), len(ids))
            positions.append(i * width + np.arange(len(ids) - predicted, len(ids), dtype=np.int32))
            rows.append(sample.rows.tail(predicted))
        together = stack_rows(rows)
        own = self._own[together.ids]
        return Batch(
            inputs,
            np.concatenate(positions).astype(np.int32),
            np.maximum(own, 0),
            np.where(own >= 0, together.logprobs, np.float32(FLOOR)),
            together.log_sums,
        )
