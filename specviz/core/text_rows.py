"""The logits of a model after each token of an existing text, from a few batched passes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specviz.core.ports import Scorer
from specviz.core.sampling import Logits

#: Rows per pass. With a vocabulary of 50,000 they take 13 MB; a pass of 64 rows costs about as much as ten of 1 row.
CHUNK = 64


class TextRows:
    """Rows of logits after the tokens of a text, read from front to back.

    Two chunks are kept, so that a block of draft tokens can start in one and end in the next. Reading further back
    costs another pass.

    Args:
        scorer: the model. Its cache is used, so nothing else should be scored with it at the same time.
        ids: the prompt and the text.
        start: number of ids before the first row that is needed; at least 1.
        chunk: rows per pass.
    """

    def __init__(self, scorer: Scorer, ids: Sequence[int], start: int, chunk: int = CHUNK) -> None:
        if start < 1:
            raise ValueError(f"a row needs at least one id before it, not {start}")
        self._scorer, self._ids, self._start, self._chunk = scorer, list(ids), start, chunk
        self._held: dict[int, Logits] = {}

    def behind(self, count: int) -> Logits:
        """(V,) logits after the first `count` ids; `count` is from `start` to len(ids) - 1."""
        if not self._start <= count < len(self._ids):
            raise ValueError(f"there are rows after {self._start} to {len(self._ids) - 1} ids, not after {count}")
        number, at = divmod(count - self._start, self._chunk)
        if number not in self._held:
            self._held = {n: rows for n, rows in self._held.items() if n == number - 1}
            self._held[number] = self._score(number)
        row: Logits = self._held[number][at]
        return row

    def _score(self, number: int) -> Logits:
        first = self._start + number * self._chunk
        end = min(first + self._chunk, len(self._ids))
        # A copy: an engine may overwrite its rows in the next call, and two chunks are held.
        return np.array(self._scorer.score(self._ids[: end - 1], end - first))
