import numpy as np
import pytest

from specviz.core.acceptance import expected_lengths, figures, overall, overlaps
from specviz.core.sampling import Row, row_of, to_probs
from specviz.core.settings import Sampling


def logs(*rows: list[float]) -> np.ndarray:
    with np.errstate(divide="ignore"):
        out: np.ndarray = np.log(np.array(rows)).astype(np.float32)
    return out


def rates(p: np.ndarray, q: np.ndarray, tokens: list[int] | None, temperature: float) -> np.ndarray:
    """As a caller has it: rows of logits of both, those of the draft perhaps over fewer tokens."""
    sampling = Sampling(temperature)
    ids = None if tokens is None else np.array(tokens, dtype=np.int64)
    return overlaps(p, [Row(to_probs(row, sampling), ids) for row in q], sampling)


def test_acceptance_is_the_shared_mass() -> None:
    p, q = logs([0.5, 0.3, 0.2], [1.0, 0.0, 0.0]), logs([0.2, 0.3, 0.5], [0.5, 0.5, 0.0])
    np.testing.assert_allclose(rates(p, q, None, 1.0), [0.7, 0.5], atol=1e-6)
    np.testing.assert_allclose(rates(p, q, None, 0.0), [0.0, 1.0])


def test_it_does_not_matter_which_model_is_which() -> None:
    rng = np.random.default_rng(3)
    p, q = rng.normal(size=(2, 30, 12)).astype(np.float32) * 3
    sampling = Sampling(0.7, top_k=5)
    np.testing.assert_allclose(
        overlaps(p, [row_of(row, sampling) for row in q], sampling),
        overlaps(q, [row_of(row, sampling) for row in p], sampling),
    )


def test_a_draft_with_fewer_tokens_shares_only_those() -> None:
    p = logs([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(rates(p, logs([0.5, 0.5]), [1, 3], 1.0), [0.2 + 0.4], atol=1e-6)
    np.testing.assert_allclose(rates(p, logs([0.1, 0.9]), [1, 3], 0.0), [1.0])
    np.testing.assert_allclose(rates(p, logs([0.9, 0.1]), [1, 3], 0.0), [0.0])


def test_padding_rows_of_either_model_share_nothing() -> None:
    wide = np.array([[0.0, 1.0, -np.inf]], dtype=np.float32)
    narrow = wide[:, :2]
    np.testing.assert_allclose(rates(wide, narrow, None, 0.8), [1.0])
    np.testing.assert_allclose(rates(narrow, wide, None, 0.8), [1.0])


def test_expected_lengths_multiply_along_a_block() -> None:
    np.testing.assert_allclose(expected_lengths(np.array([0.5, 0.5, 1.0]), 2), [0.5 + 0.25, 0.5 + 0.5])
    np.testing.assert_allclose(expected_lengths(np.ones(9)), [4.0] * 6)
    assert len(expected_lengths(np.ones(3))) == 0


def test_figures_weigh_every_token_alike() -> None:
    found = figures(
        [("a", 0.0, np.ones(3)), ("b", 0.0, np.zeros(1)), ("a", 0.8, np.full(6, 0.5)), ("a", 0.0, np.ones(4))]
    )
    figure = {(f.temperature, f.domain): f for f in found}
    assert figure[0.0, "all"].acceptance == 7 / 8 and figure[0.0, "all"].tokens == 8 and figure[0.0, "a"].texts == 2
    assert figure[0.0, "b"].length is None and figure[0.8, "all"].length == pytest.approx(0.9375)
    assert overall(found) == {0.0: 7 / 8, 0.8: 0.5}
    assert figures([]) == []
