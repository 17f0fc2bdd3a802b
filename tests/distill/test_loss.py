"""The losses over kept tokens, against the same over whole distributions."""

import numpy as np
import pytest

from specviz.distill.loss import MOVE, TV_MOST, forward_kl, mixed, total_variation, tv_weight
from specviz.distill.samples import FLOOR, SOFT_TEMPERATURES, rows_of
from specviz.engines.mlx.blas import use_fast_blas

use_fast_blas()
import mlx.core as mx  # noqa: E402

V, M = 12, 5


def softmax(x: np.ndarray, t: float = 1.0) -> np.ndarray:
    e = np.exp((x - x.max(axis=-1, keepdims=True)) / t)
    out: np.ndarray = e / e.sum(axis=-1, keepdims=True)
    return out


def dense_tv(p_logits: np.ndarray, q_logits: np.ndarray, t: float) -> np.ndarray:
    out: np.ndarray = 0.5 * np.abs(softmax(p_logits, t) - softmax(q_logits, t)).sum(axis=-1)
    return out


def dense_kl(p_logits: np.ndarray, q_logits: np.ndarray) -> np.ndarray:
    p, q = softmax(p_logits), softmax(q_logits)
    out: np.ndarray = (p * np.log(p / q)).sum(axis=-1)
    return out


@pytest.fixture
def pair() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(M, V)).astype(np.float32) * 2, rng.normal(size=(M, V)).astype(np.float32)


@pytest.mark.parametrize("number", range(len(SOFT_TEMPERATURES)))
def test_tv_over_kept_tokens_is_the_dense_one_when_all_are_kept(
    pair: tuple[np.ndarray, np.ndarray], number: int
) -> None:
    p, q = pair
    rows, t = rows_of(p, V), SOFT_TEMPERATURES[number]
    tv = total_variation(
        mx.array(q), mx.array(rows.ids), mx.array(rows.logprobs), mx.array(rows.log_sums[:, number]), t
    )
    np.testing.assert_allclose(np.array(tv.loss), dense_tv(p, q, t), atol=1e-5)


def test_kl_over_kept_tokens_is_the_dense_one_when_all_are_kept(pair: tuple[np.ndarray, np.ndarray]) -> None:
    p, q = pair
    rows = rows_of(p, V)
    kl = forward_kl(mx.array(q), mx.array(rows.ids), mx.array(rows.logprobs))
    np.testing.assert_allclose(np.array(kl.loss), dense_kl(p, q), atol=1e-5)


def test_tokens_that_are_not_kept_can_only_raise_tv(pair: tuple[np.ndarray, np.ndarray]) -> None:
    p, q = pair
    t, rows = SOFT_TEMPERATURES[0], rows_of(p, 4)
    tv = total_variation(mx.array(q), mx.array(rows.ids), mx.array(rows.logprobs), mx.array(rows.log_sums[:, 0]), t)
    exact = dense_tv(p, q, t)
    tail = 1 - np.sort(softmax(p, t), axis=1)[:, -4:].sum(axis=1)
    assert np.all(np.array(tv.loss) >= exact - 1e-6) and np.all(np.array(tv.loss) <= exact + tail + 1e-6)


def test_a_token_that_the_student_lacks_counts_as_rejected_and_has_no_gradient(
    pair: tuple[np.ndarray, np.ndarray],
) -> None:
    p, q = pair
    rows = rows_of(p, V)
    lacked = rows.ids == 3
    ids, logprobs = np.where(lacked, 0, rows.ids), np.where(lacked, np.float32(FLOOR), rows.logprobs)
    tv = total_variation(mx.array(q), mx.array(ids), mx.array(logprobs), mx.array(rows.log_sums[:, 0]), 0.8)
    p8, q8 = softmax(p, 0.8), softmax(q, 0.8)
    kept = np.arange(V) != 3
    np.testing.assert_allclose(np.array(tv.loss), 1 - np.minimum(p8, q8)[:, kept].sum(axis=1), atol=1e-5)
    assert np.all(np.isfinite(np.array(forward_kl(mx.array(q), mx.array(ids), mx.array(logprobs)).loss)))


@pytest.mark.parametrize("weight", [0.0, 0.5, 0.9])
def test_the_gradient_is_that_of_the_dense_loss(pair: tuple[np.ndarray, np.ndarray], weight: float) -> None:
    p, q = pair
    rows = rows_of(p, V)

    def sparse(logits: mx.array) -> mx.array:
        loss: mx.array = mixed(logits, mx.array(rows.ids), mx.array(rows.logprobs), mx.array(rows.log_sums), weight)
        return loss

    def dense(logits: np.ndarray) -> float:
        tv = np.mean([dense_tv(p.astype(np.float64), logits, t) for t in SOFT_TEMPERATURES], axis=0)
        return float(np.mean((1 - weight) * dense_kl(p.astype(np.float64), logits) + weight * tv))

    gradient = np.array(mx.grad(sparse)(mx.array(q)))
    step, wide = 1e-5, q.astype(np.float64)
    reference = np.zeros_like(wide)
    for at in np.ndindex(*wide.shape):
        up, down = wide.copy(), wide.copy()
        up[at] += step
        down[at] -= step
        reference[at] = (dense(up) - dense(down)) / (2 * step)
    np.testing.assert_allclose(gradient, reference, atol=2e-5)
    loss = float(np.array(sparse(mx.array(q))))
    assert loss == pytest.approx(dense(wide), abs=1e-5)


def test_the_weight_moves_from_kl_to_tv() -> None:
    assert tv_weight(0.0) == 0 and tv_weight(MOVE[0]) == 0
    assert tv_weight(sum(MOVE) / 2) == pytest.approx(TV_MOST / 2)
    assert tv_weight(MOVE[1]) == pytest.approx(TV_MOST) == tv_weight(1.0)
