import numpy as np
import pytest

from specviz.distill.evaluate import acceptance, acceptance_of_sample, expected_lengths, figures, overall, score_texts
from specviz.distill.samples import TeacherText, rows_of
from specviz.engines.distilled import DraftVocabulary
from specviz.engines.toy import ToyScorer, ToyTokenizer


def logs(*rows: list[float]) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array(rows)).astype(np.float32)


def test_acceptance_is_the_shared_mass() -> None:
    p, q = logs([0.5, 0.3, 0.2], [1.0, 0.0, 0.0]), logs([0.2, 0.3, 0.5], [0.5, 0.5, 0.0])
    np.testing.assert_allclose(acceptance(p, q, None, 1.0), [0.7, 0.5], atol=1e-6)
    np.testing.assert_allclose(acceptance(p, q, None, 0.0), [0.0, 1.0])


def test_a_draft_with_fewer_tokens_shares_only_those() -> None:
    p = logs([0.1, 0.2, 0.3, 0.4])
    q = logs([0.5, 0.5])
    tokens = np.array([1, 3], dtype=np.int32)
    np.testing.assert_allclose(acceptance(p, q, tokens, 1.0), [0.2 + 0.4], atol=1e-6)
    np.testing.assert_allclose(acceptance(p, logs([0.1, 0.9]), tokens, 0.0), [1.0])
    np.testing.assert_allclose(acceptance(p, logs([0.9, 0.1]), tokens, 0.0), [0.0])


def test_padding_rows_of_either_model_share_nothing() -> None:
    wide = np.array([[0.0, 1.0, -np.inf]], dtype=np.float32)
    narrow = wide[:, :2]
    np.testing.assert_allclose(acceptance(wide, narrow, None, 0.8), [1.0])
    np.testing.assert_allclose(acceptance(narrow, wide, None, 0.8), [1.0])


def test_expected_lengths_multiply_along_a_block() -> None:
    np.testing.assert_allclose(expected_lengths(np.array([0.5, 0.5, 1.0]), 2), [0.5 + 0.25, 0.5 + 0.5])
    np.testing.assert_allclose(expected_lengths(np.ones(9)), [4.0] * 6)
    assert len(expected_lengths(np.ones(3))) == 0


def test_figures_weigh_every_token_alike() -> None:
    found = figures(
        [("a", 0.0, np.ones(3)), ("b", 0.0, np.zeros(1)), ("a", 0.8, np.full(6, 0.5)), ("a", 0.0, np.ones(4))]
    )
    told = {(f.temperature, f.domain): f for f in found}
    assert told[0.0, "all"].acceptance == 7 / 8 and told[0.0, "all"].tokens == 8 and told[0.0, "a"].texts == 2
    assert told[0.0, "b"].length is None and told[0.8, "all"].length == pytest.approx(0.9375)
    assert overall(found) == {0.0: 7 / 8, 0.8: 0.5}
    assert figures([]) == []


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_quick_measure_is_the_exact_one_where_all_tokens_are_kept(temperature: float) -> None:
    rng = np.random.default_rng(5)
    p, q = (rng.normal(size=(20, 9)).astype(np.float32) * 2 for _ in range(2))
    tokens = np.array([0, 2, 3, 7], dtype=np.int32)
    inputs = np.zeros(9, dtype=np.int32)
    inputs[tokens] = np.arange(4)
    # At temperature 0 the text is the argmax, which the quick measure uses.
    sample = TeacherText("a", temperature, np.array([1]), p.argmax(axis=1).astype(np.int32), rows_of(p, 9))
    np.testing.assert_allclose(
        acceptance_of_sample(q[:, tokens], sample, DraftVocabulary(tokens, inputs)),
        acceptance(p, q[:, tokens], tokens, temperature),
        atol=1e-5,
    )


def test_a_target_is_its_own_perfect_draft_and_a_noisy_one_is_not() -> None:
    toy = ToyTokenizer()
    target, text = ToyScorer(toy), [3, 4, 5, 6, 7]
    sample = TeacherText("toy", 0.8, np.array([1, 2]), np.array(text), rows_of(np.zeros((5, 9), np.float32)))
    assert overall(score_texts([sample], target, ToyScorer(toy), None))[0.8] == pytest.approx(1.0)
    assert 0.1 < overall(score_texts([sample], target, ToyScorer(toy, 0.8), None))[0.8] < 0.95
    assert score_texts([sample], target, target, None, cancelled=lambda: True) == []
