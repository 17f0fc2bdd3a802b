from collections.abc import Sequence

import numpy as np
import pytest

from specviz.core.acceptance import overall
from specviz.core.ports import Scorer
from specviz.distill.evaluate import quick, score_texts
from specviz.distill.samples import TeacherText, rows_of
from specviz.engines.distilled import DraftVocabulary
from specviz.engines.toy import ToyScorer, ToyTokenizer


class Rows(Scorer):
    """A scorer with given logits."""

    def __init__(self, logits: np.ndarray) -> None:
        self.logits = logits

    def score(self, token_ids: Sequence[int], rows: int) -> np.ndarray:
        return self.logits[-rows:]

    def reset(self) -> None:
        pass


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_quick_measure_is_exact_where_all_tokens_are_kept(temperature: float) -> None:
    rng = np.random.default_rng(5)
    p = rng.normal(size=(20, 9)).astype(np.float32) * 2
    q = p + rng.normal(size=p.shape).astype(np.float32)
    tokens = np.array([0, 2, 3, 7], dtype=np.int32)
    inputs = np.zeros(9, dtype=np.int32)
    inputs[tokens] = np.arange(4)
    vocabulary = DraftVocabulary(tokens, inputs)
    # At temperature 0 the text is the argmax, which the quick measure uses.
    sample = TeacherText("a", temperature, np.array([1]), p.argmax(axis=1).astype(np.int32), rows_of(p, 9))
    [near, _], [exact, _] = (
        quick([sample], Rows(q[:, tokens]), vocabulary),
        score_texts([sample], Rows(p), Rows(q[:, tokens]), vocabulary),
    )
    assert near.acceptance == pytest.approx(exact.acceptance, abs=1e-5) and 0.1 < exact.acceptance < 0.9
    assert near.length == pytest.approx(exact.length, abs=1e-5)


def test_a_target_accepts_all_of_itself_and_not_all_of_a_noisy_draft() -> None:
    toy = ToyTokenizer()
    target, text = ToyScorer(toy), [3, 4, 5, 6, 7]
    every = np.arange(toy.vocab_size, dtype=np.int32)
    sample = TeacherText("toy", 0.8, np.array([1, 2]), np.array(text), rows_of(np.zeros((5, 9), np.float32)))

    def found(draft: ToyScorer) -> float:
        return overall(score_texts([sample], target, draft, DraftVocabulary(every, every)))[0.8]

    assert found(ToyScorer(toy)) == pytest.approx(1.0) and 0.1 < found(ToyScorer(toy, 0.8)) < 0.95
    assert score_texts([sample], target, target, DraftVocabulary(every, every), cancelled=lambda: True) == []
