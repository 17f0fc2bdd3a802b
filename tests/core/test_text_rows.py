"""Logits along a text, from few passes."""

from __future__ import annotations

import numpy as np
import pytest

from specviz.core.text_rows import TextRows
from specviz.engines.toy import ToyScorer
from tests.toys import TOKENIZER

IDS = TOKENIZER.encode("the draft reads and writes the draft and the target keeps it")


@pytest.mark.parametrize("chunk", [1, 2, 5, 100])
def test_rows_are_those_of_one_pass_each(chunk: int) -> None:
    scorer = ToyScorer(TOKENIZER)
    rows = TextRows(scorer, IDS, 3, chunk)
    counts = [*range(3, len(IDS)), 4, len(IDS) - 1, 3]
    for count in counts:
        np.testing.assert_array_equal(rows.behind(count), scorer.score(IDS[:count], 1)[0])


def test_rows_that_it_does_not_have_are_refused() -> None:
    rows = TextRows(ToyScorer(TOKENIZER), IDS, 3)
    for count in (2, len(IDS)):
        with pytest.raises(ValueError, match="there are rows after"):
            rows.behind(count)
    with pytest.raises(ValueError, match="at least one id before it"):
        TextRows(ToyScorer(TOKENIZER), IDS, 0)


def test_no_more_than_two_chunks_are_kept() -> None:
    rows = TextRows(ToyScorer(TOKENIZER), IDS * 9, 1, 4)
    for count in range(1, len(IDS) * 9):
        rows.behind(count)
        assert len(rows._held) <= 2
