"""A model's view of a text that already stands there: its logits behind each token, from a few batched passes."""

from __future__ import annotations

from collections.abc import Sequence

from specviz.core.ports import Scorer
from specviz.core.sampling import Logits

#: Rows of one pass. At 50,000 tokens of vocabulary they take 13 MB, and one pass of 64 costs about as much as ten of 1.
CHUNK = 64


class TextRows:
    """Rows of logits behind the tokens of a text, read from front to back.

    Two chunks are kept, so that a block of draft tokens may begin in one and end in the next. Whoever goes back
    further pays for another pass.

    Args:
        scorer: the model. Its cache is used: nothing else should be scored with it meanwhile.
        ids: the whole text, with what stands in front of it.
        start: ids in front of the first row that is wanted; at least 1.
        chunk: rows of one pass.
    """

    def __init__(self, scorer: Scorer, ids: Sequence[int], start: int, chunk: int = CHUNK) -> None:
        if start < 1:
            raise ValueError(f"a row stands behind at least one id, not {start}")
        self._scorer, self._ids, self._start, self._chunk = scorer, list(ids), start, chunk
        self._held: dict[int, Logits] = {}

    def behind(self, count: int) -> Logits:
        """(V,) logits of what follows the first `count` ids, from `start` to all of them but the last."""
        if not self._start <= count < len(self._ids):
            raise ValueError(f"rows stand behind {self._start} to {len(self._ids) - 1} ids, not {count}")
        number, at = divmod(count - self._start, self._chunk)
        if number not in self._held:
            self._held = {n: rows for n, rows in self._held.items() if n == number - 1}
            self._held[number] = self._score(number)
        row: Logits = self._held[number][at]
        return row

    def _score(self, number: int) -> Logits:
        first = self._start + number * self._chunk
        end = min(first + self._chunk, len(self._ids))
        return self._scorer.score(self._ids[: end - 1], end - first)
