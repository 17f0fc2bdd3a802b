"""Replacements of rejected tokens, with the help of the target's samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from specviz.core.errors import AnswerError
from specviz.core.sampling import Row, draw, residual
from specviz.core.settings import Sampling
from specviz.targets.completions.ways.knowledge import Known, keeps, know
from specviz.targets.completions.ways.thinning import FIRST, MOST, OwnSamples, TargetSample, refill

V = 12
P = np.random.default_rng(0).permutation(1 / np.arange(1, V + 1) ** 0.9)
P /= P.sum()
BEST = np.argsort(-P)


def target(seed: int = 0, p: np.ndarray = P, sizes: list[int] | None = None) -> Callable[[int], list[TargetSample]]:
    rng = np.random.default_rng(seed)

    def ask(n: int) -> list[TargetSample]:
        if sizes is not None:
            sizes.append(n)
        return [TargetSample(i, float(np.log(P[i]))) for i in (draw(p, rng) for _ in range(n))]

    return ask


def knowing(n: int) -> Known:
    known = know(BEST[:n].tolist(), np.log(P[BEST[:n]]).tolist(), Sampling(1.0), V)
    assert known is not None
    return known


DRAFTS = {
    "near": P * np.random.default_rng(3).uniform(0.2, 2.5, V),
    "flat": np.ones(V),
    "outside": np.where(np.isin(np.arange(V), BEST[:4]), 0, 1.0),
    "one token": np.eye(V)[BEST[0]],
}


@pytest.mark.parametrize("n", [0, 1, 4, V])
@pytest.mark.parametrize("draft", DRAFTS)
def test_a_refill_is_distributed_as_the_residual(draft: str, n: int) -> None:
    q = DRAFTS[draft] / DRAFTS[draft].sum()
    wanted, known, ask = residual(Row(P), Row(q)).probs, knowing(n), target(1)
    rng, rounds = np.random.default_rng(2), 3000
    counts = np.bincount([refill(known, Row(q), OwnSamples(ask), rng).token_id for _ in range(rounds)], minlength=V)
    # Four standard deviations of a count, and a margin for very small expected counts.
    assert np.all(np.abs(counts - rounds * wanted) <= 4 * np.sqrt(rounds * wanted) + 4 * (wanted > 0))


@pytest.mark.parametrize("n", [0, 4])
def test_without_a_q_it_is_distributed_as_p(n: int) -> None:
    known, ask, rng, rounds = knowing(n), target(1), np.random.default_rng(2), 4000
    counts = np.bincount([refill(known, None, OwnSamples(ask), rng).token_id for _ in range(rounds)], minlength=V)
    assert np.all(np.abs(counts - rounds * P) <= 4 * np.sqrt(rounds * P))


@pytest.mark.parametrize("draft", DRAFTS)
def test_thinning_alone_uses_one_sample_per_tested_position(draft: str) -> None:
    q = DRAFTS[draft] / DRAFTS[draft].sum()
    known, ask, rng = knowing(0), target(4), np.random.default_rng(5)
    used, positions = 0, 10_000
    for _ in range(positions):
        x = draw(q, rng)
        if rng.random() >= keeps(float(P[x]), float(q[x])):
            own = OwnSamples(ask)
            refill(known, Row(q), own, rng, float(q[x] - P[x]))
            used += own.used
    print(f"\nthinning alone, {draft}: {used / positions:.3f} samples per tested position")
    assert 0.9 < used / positions <= 1.1


def test_the_best_first_ask_for_the_tail_alone() -> None:
    """Only rejections whose residual lies outside the best tokens need a request, and mostly one is enough."""
    q = DRAFTS["one token"]
    known, rng, sizes = knowing(4), np.random.default_rng(5), list[int]()
    ask, rounds = target(4, sizes=sizes), 2000
    for _ in range(rounds):
        refill(known, Row(q), OwnSamples(ask), rng)
    share = known.tail / (1 - P[BEST[0]])
    assert len(sizes) / rounds == pytest.approx(share * 1.05, abs=0.06) and max(sizes) <= MOST


def test_batches_fit_the_share_that_is_looked_for_and_grow() -> None:
    sizes: list[int] = []
    own = OwnSamples(target(sizes=sizes))
    for _ in range(FIRST + 1 + 2 * FIRST + MOST):
        own.next(0.001)
    assert sizes == [FIRST, 2 * FIRST, MOST, MOST]
    sizes.clear()
    OwnSamples(target(sizes=sizes)).next(0.3)
    OwnSamples(target(sizes=sizes)).next()
    assert sizes == [10, 1]


def test_samples_that_never_leave_the_best_are_found_out() -> None:
    inside = np.where(np.isin(np.arange(V), BEST[:4]), P, 0)
    own = OwnSamples(target(p=inside))
    with pytest.raises(AnswerError, match="best tokens"):
        refill(knowing(4), Row(inside), own, _always_tail())
    assert own.used == knowing(4).patience


def test_samples_that_never_pass_are_found_out() -> None:
    x = int(BEST[0])
    own = OwnSamples(target(p=np.eye(V)[x]))
    with pytest.raises(AnswerError, match="can replace"):
        refill(knowing(0), Row.one_hot(x), own, np.random.default_rng(0), 0.5)


def test_where_nothing_is_left_the_target_draws() -> None:
    """With p == q only rounding can cause a rejection (jaymody/speculative-sampling#5)."""
    known = knowing(V)
    own, q = OwnSamples(target()), np.zeros(V)
    q[known.ids] = known.probs
    drawn = refill(known, Row(q), own, np.random.default_rng(0), 1e-17)
    assert own.used == 1 and 0 <= drawn.token_id < V


def test_with_an_uncertain_normaliser_it_gives_up_in_the_end() -> None:
    known = know(BEST[:4].tolist(), np.log(P[BEST[:4]]).tolist(), Sampling(0.7), V)
    assert known is not None and known.error > 0
    own = OwnSamples(target())
    refill(known, Row(np.ones(V)), own, np.random.default_rng(0), 0.1)
    assert own.used <= known.looks() * (known.patience + 1) + 1


def test_there_is_an_end_to_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft that nearly equals the target: a rejection is as rare as a token that can replace it."""
    monkeypatch.setattr("specviz.targets.completions.ways.thinning.LIMIT", 500)
    own = OwnSamples(target())
    refill(knowing(4), Row(P * 1.000001), own, _always_tail(), 1e-6)
    assert 500 < own.used < 600


class _Tail(np.random.Generator):
    """Looks at the tail first, always."""

    def random(self, *args: object, **kwargs: object) -> float:  # type: ignore[override]
        return 0.999999


def _always_tail() -> np.random.Generator:
    return _Tail(np.random.PCG64(0))
