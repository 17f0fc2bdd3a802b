"""What a few log-probabilities tell about p: the output's distribution is computed, not sampled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from specviz.core.sampling import Row, to_probs
from specviz.core.settings import Sampling
from specviz.targets.completions.ways.knowledge import ROUNDING, Known, keeps, know, left, passes

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """A row, the sampling settings, and a draft."""

    logprobs: Array
    q: Array
    n: int
    sampling: Sampling

    @property
    def p(self) -> Array:
        weights = np.exp((self.logprobs - self.logprobs.max()) / self.sampling.temperature)
        if self.sampling.top_k:
            weights[np.argsort(-self.logprobs, kind="stable")[self.sampling.top_k :]] = 0
        p: Array = weights / weights.sum()
        return p

    def known(self) -> Known | None:
        ids = np.argsort(-self.logprobs, kind="stable")[: self.n]
        return know(ids.tolist(), self.logprobs[ids].tolist(), self.sampling, len(self.logprobs))


def row_of(kind: str, v: int, rng: np.random.Generator) -> Array:
    """(V,) log-probabilities of a distribution as models have it."""
    match kind:
        case "peaked":
            logits = rng.normal(0, 1, v) + np.where(np.arange(v) < 2, rng.uniform(5, 15, v), 0)
        case "flat":
            logits = rng.normal(0, rng.uniform(0, 0.5), v)
        case "zipf":
            logits = -rng.uniform(0.6, 2.5) * np.log(np.arange(1, v + 1)) + rng.normal(0, 0.3, v)
        case "steps":  # as packed as a tail can be
            logits = np.where(np.arange(v) < v // 3 + 1, 0.0, -30.0)
        case _:
            logits = rng.normal(0, rng.uniform(0.5, 4), v)
    logits = rng.permutation(logits)
    logprobs: Array = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
    return logprobs


def draft_of(kind: str, logprobs: Array, n: int, rng: np.random.Generator) -> Array:
    """(V,) a q that agrees with p to some degree."""
    v = len(logprobs)
    match kind:
        case "same":
            q = np.exp(logprobs)
        case "near":
            q = np.exp(logprobs + rng.normal(0, 0.7, v))
        case "sharper":
            q = np.exp(1.5 * logprobs)
        case "tail only" if v > n:
            q = np.exp(logprobs)
            q[np.argsort(-logprobs, kind="stable")[:n]] = 0
        case "one token":
            q = np.eye(v)[rng.integers(v)]
        case "few":
            q = np.where(rng.random(v) < 3 / v, rng.random(v), 0) + 1e-300
        case _:
            q = rng.exponential(1, v)
    normed: Array = q / q.sum()
    return normed


ROWS = ("peaked", "flat", "zipf", "steps", "normal")
DRAFTS = ("same", "near", "sharper", "tail only", "one token", "few", "other")


@st.composite
def cases(draw: st.DrawFn, temperatures: st.SearchStrategy[float], top_k: bool = False) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    v, n = draw(st.sampled_from([2, 3, 7, 25, 150, 2000])), draw(st.integers(1, 20))
    logprobs = row_of(draw(st.sampled_from(ROWS)), v, rng)
    q = draft_of(draw(st.sampled_from(DRAFTS)), logprobs, n, rng)
    k = draw(st.integers(1, min(n, v))) if top_k else 0
    return Case(logprobs, q, n, Sampling(draw(temperatures), k))


def all_p_hat(known: Known, logprobs: Array) -> Array:
    return np.array([known.prob(i, float(x)) for i, x in enumerate(logprobs)])


def thinned(case: Case, known: Known) -> Array:
    """(V,) the output distribution of thinning alone."""
    p, q, p_hat = case.p, case.q, all_p_hat(known, case.logprobs)
    stays = q * [keeps(a, b) for a, b in zip(p_hat, q, strict=True)]
    passed = p * [passes(a, b) for a, b in zip(p_hat, q, strict=True)]
    again = p if passed.sum() == 0 else passed / passed.sum()
    out: Array = stays + (1 - stays.sum()) * again
    return out


def best_first(case: Case, known: Known, patient: bool) -> Array:
    """(V,) the output distribution of the N best and then thinning; `patient`: without giving up."""
    p, q, p_hat = case.p, case.q, all_p_hat(known, case.logprobs)
    stays = q * [keeps(a, b) for a, b in zip(p_hat, q, strict=True)]
    refused = 1 - stays.sum()
    outside = np.ones(len(p), dtype=bool)
    outside[known.ids] = False
    share = p[outside].sum()
    hold = 0.0 if patient and share > 0 else (1 - share) ** known.patience
    tail = np.where(outside, p, 0.0) / share if share > 0 else p
    seen = known.tail * ((1 - hold) * tail + hold * p)
    f = seen * [passes(a, b) for a, b in zip(p_hat, q, strict=True)]
    f[known.ids] += left(known, Row(q))
    out: Array = stays + refused * p
    if f.sum() < 1e-300:
        return out
    looks = f.sum() / (left(known, Row(q)).sum() + known.tail)
    gives_up = 0.0 if patient or not known.error else max(0.0, 1 - looks) ** known.looks()
    out = stays + refused * ((1 - gives_up) * f / f.sum() + gives_up * p)
    return out


def variation(one: Array, other: Array) -> float:
    return 0.5 * float(np.abs(one - other).sum())


@settings(max_examples=300, deadline=None)
@given(cases(st.just(1.0)))
def test_at_temperature_1_the_output_is_p(case: Case) -> None:
    known = case.known()
    assert known is not None and known.error == 0 == known.epsilon
    # A tail below the rounding error of single precision counts as 0.
    allowed = 1e-9 if known.tail > 0 or case.n >= len(case.p) else 2 * ROUNDING
    assert variation(thinned(case, known), case.p) <= allowed
    assert variation(best_first(case, known, patient=True), case.p) <= allowed
    assert variation(best_first(case, known, patient=False), case.p) <= 2 * ROUNDING


@settings(max_examples=200, deadline=None)
@given(cases(st.floats(0.3, 2), top_k=True))
def test_with_top_k_within_the_best_the_output_is_p_at_any_temperature(case: Case) -> None:
    known = case.known()
    if known is None:  # a tie at the cut, which the target's own draw decides
        best = np.sort(case.logprobs)[::-1]
        assert best[case.sampling.top_k - 1] - best[case.sampling.top_k] < 1e-5
        return
    assert known.error == 0 == known.tail
    assert variation(best_first(case, known, patient=False), case.p) <= 1e-9


@settings(max_examples=500, deadline=None)
@given(cases(st.floats(0.3, 2)))
def test_the_true_error_never_exceeds_the_bound(case: Case) -> None:
    known = case.known()
    assert known is not None
    outside = np.ones(len(case.p), dtype=bool)
    outside[known.ids] = False
    note(f"e {known.error}, C {known.tail}, tau {case.p[outside].sum()}")
    assert known.tail_low - 1e-9 <= case.p[outside].sum() <= known.tail_high + 1e-9
    small = 1e-12
    assert variation(thinned(case, known), case.p) <= known.error + small
    assert variation(best_first(case, known, patient=True), case.p) <= known.error + small
    assert variation(best_first(case, known, patient=False), case.p) <= known.epsilon + small


def test_the_bound_is_not_idle() -> None:
    """On some rows the true error is near the bound: a bound a few times smaller would be wrong."""
    rng = np.random.default_rng(0)
    nearest = {"thinning alone": 0.0, "best first": 0.0}
    bounds = []
    for _ in range(1500):
        v, n = int(rng.choice([25, 60, 150])), int(rng.integers(1, 21))
        logprobs = row_of(str(rng.choice(ROWS)), v, rng)
        q = draft_of(str(rng.choice(DRAFTS)), logprobs, n, rng)
        case = Case(logprobs, q, n, Sampling(float(rng.uniform(0.3, 2))))
        known = case.known()
        assert known is not None
        if known.error < 1e-3:
            continue
        bounds.append(known.epsilon)
        alone, first = thinned(case, known), best_first(case, known, patient=False)
        nearest["thinning alone"] = max(nearest["thinning alone"], variation(alone, case.p) / known.error)
        nearest["best first"] = max(nearest["best first"], variation(first, case.p) / known.epsilon)
    print(f"\ntrue error / bound, at most: {nearest}; bounds: median {np.median(bounds):.3f}")
    assert nearest["thinning alone"] > 0.5 and nearest["best first"] > 0.5


def test_thinning_alone_needs_one_sample_per_tested_position() -> None:
    """A rejection has probability R = S and needs 1/S samples on average."""
    rng = np.random.default_rng(1)
    for kind in ("near", "sharper", "one token", "few", "other"):
        logprobs = row_of("zipf", 150, rng)
        case = Case(logprobs, draft_of(kind, logprobs, 0, rng), 0, Sampling(1.0))
        known = know([], [], case.sampling, 150)
        assert known is not None and known.tail == 1 and known.error == 0
        passing = sum(p * passes(p, q) for p, q in zip(case.p, case.q, strict=True))
        refusing = sum(q * (1 - keeps(p, q)) for p, q in zip(case.p, case.q, strict=True))
        assert refusing / passing == pytest.approx(1)


@settings(max_examples=400, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from(ROWS),
    st.integers(1, 20),
    st.sampled_from([0.3, 0.7, 1.0, 1.5]),
    st.sampled_from([0, 1, 5, 20, 50]),
    st.sampled_from([0.1, 0.5, 0.9, 0.95, 0.999, 1.0]),
)
def test_what_is_decided_about_top_k_and_top_p_is_right(
    seed: int, kind: str, n: int, temperature: float, top_k: int, top_p: float
) -> None:
    rng = np.random.default_rng(seed)
    logprobs = row_of(kind, 100, rng).astype(np.float32)
    sampling = Sampling(temperature, top_k, top_p)
    ids = np.argsort(-logprobs, kind="stable")[:n]
    known = know(ids.tolist(), logprobs[ids].tolist(), sampling, 100)
    if known is None or known.error > 0 or known.tail > 0:
        return
    p = to_probs(logprobs, sampling)
    assert np.allclose(known.probs, p[ids], atol=1e-5)
    outside = np.setdiff1d(np.arange(100), ids)
    assert p[outside].sum() <= 1e-5


def test_top_p_within_the_best_is_decided_and_beyond_them_it_is_not() -> None:
    logprobs = np.log([0.5, 0.3, 0.1, 0.05])
    inside = know([7, 1, 4, 9], logprobs.tolist(), Sampling(1.0, 0, 0.75), 50)
    assert inside is not None and np.allclose(inside.probs, [0.625, 0.375, 0, 0])
    assert inside.prob(4, None) == inside.prob(30, None) == 0 and inside.epsilon == 0
    assert know([7, 1, 4, 9], logprobs.tolist(), Sampling(1.0, 0, 0.96), 50) is None
    assert know([7, 1, 4, 9], logprobs.tolist(), Sampling(1.0, 5), 50) is None  # the fifth best is not known
    assert know([7, 1, 4, 9], logprobs.tolist(), Sampling(1.0, 0, 0.8), 50) is None  # rounding decides
    tied = np.log([0.5, 0.2, 0.2, 0.05])
    assert know([7, 1, 4, 9], tied.tolist(), Sampling(1.0, 2), 50) is None


def test_temperature_0_knows_one_token_and_any_other_is_nothing() -> None:
    """The temperature comes first (jaymody/speculative-sampling#9)."""
    known = know([3, 5], np.log([0.5, 0.3]).tolist(), Sampling(0.0), 10)
    assert known is not None and known.probs.tolist() == [1, 0] and known.prob(8, -1.0) == 0 and known.epsilon == 0


def test_a_row_with_missing_tokens_is_known_less_well() -> None:
    logprobs = np.log([0.4, 0.2, 0.1]).tolist()
    whole, part = (know([0, 1, 2], logprobs, Sampling(0.5), 100, whole=w) for w in (True, False))
    assert whole is not None and part is not None and part.error > whole.error > 0


def test_a_tail_token_needs_its_own_log_probability() -> None:
    known = know([0, 1], np.log([0.5, 0.3]).tolist(), Sampling(1.0), 10)
    assert known is not None and known.prob(5, float(np.log(0.1))) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="without a log-probability"):
        known.prob(5, None)
