"""The maths of docs/architecture.md, section "The maths": exact where it can be computed exactly."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.core.errors import RunError
from specviz.core.noise import Noise
from specviz.core.sampling import (
    Floats,
    Logits,
    Row,
    acceptance,
    bonus,
    draw,
    draw_from,
    draw_row,
    draw_shared,
    expected_acceptance,
    overlap,
    promise,
    replacement,
    residual,
    row_of,
    summarise,
    to_probs,
    token_test,
    top_ids,
)
from specviz.core.settings import Rule, Sampling

# transformers#32867 and vllm#40149.
P = np.array([0.4, 0.35, 0.25])
Q = np.array([0.1, 0.1, 0.8])


def random_pair(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Distributions of every kind: flat, peaked, sparse, disjoint, one-hot, equal."""
    n = int(rng.integers(1, 60))
    p, q = (rng.dirichlet(np.full(n, 10.0 ** rng.uniform(-2, 1))) for _ in range(2))
    kind = rng.integers(6)
    if kind == 0:
        p, q = _sparse(p, rng), _sparse(q, rng)
    elif kind == 1:
        q = np.eye(n)[rng.integers(n)]
    elif kind == 2:
        q = p.copy()
    elif kind == 3:
        p = np.eye(n)[rng.integers(n)]
    return p, q


def _sparse(row: Floats, rng: np.random.Generator) -> Floats:
    row = row * (rng.random(len(row)) < 0.5)
    out: Floats = row / row.sum() if row.sum() > 0 else np.eye(len(row))[0]
    return out


def output_of(p: Floats, q: Floats) -> Floats:
    """The output distribution of accepting and resampling together."""
    kept = q * acceptances(p, q)
    out: Floats = kept + (1 - kept.sum()) * residual(Row(p), Row(q)).dense(len(p))
    return out


def acceptances(p: Floats, q: Floats) -> Floats:
    return np.array([acceptance(a, b) for a, b in zip(p.tolist(), q.tolist(), strict=True)])


def worst_identity_error(pairs: int = 10_000) -> float:
    rng = np.random.default_rng(0)
    return max(float(np.abs(output_of(p, q) - p).max()) for p, q in (random_pair(rng) for _ in range(pairs)))


def test_accepting_and_resampling_give_the_target_exactly() -> None:
    worst = worst_identity_error()
    print(f"sampler identity: worst error over 10,000 random pairs {worst:.2e}")
    assert worst <= 1e-12


def test_the_overlap_is_what_is_kept_on_average() -> None:
    rng = np.random.default_rng(4)
    for _ in range(2_000):
        p, q = random_pair(rng)
        assert overlap(Row(p), Row(q)) == pytest.approx((q * acceptances(p, q)).sum(), abs=1e-12)
        # The probability of a rejection equals the sum of the residual before it is normalised.
        assert 1 - overlap(Row(p), Row(q)) == pytest.approx(np.maximum(p - q, 0).sum(), abs=1e-12)
        assert 0 <= overlap(Row(p), Row(q)) <= 1


def test_the_overlap_of_a_sparse_row_is_that_of_the_full_one() -> None:
    rng = np.random.default_rng(5)
    for _ in range(500):
        p, q = random_pair(rng)
        ids = np.flatnonzero(q)
        # Ids beyond p's vocabulary are padding of the draft.
        beyond = np.append(ids, len(p) + 3)
        assert overlap(Row(p), Row(q[ids], ids)) == pytest.approx(overlap(Row(p), Row(q)), abs=1e-15)
        assert overlap(Row(p), Row(np.append(q[ids], 0.0), beyond)) == pytest.approx(overlap(Row(p), Row(q)), abs=1e-15)
        assert overlap(Row(p), Row(np.append(q, 0.0))) == overlap(Row(p), Row(q))


def test_overlaps_by_hand() -> None:
    assert overlap(Row(P), Row(Q)) == pytest.approx(0.45)  # vllm#40149
    assert overlap(Row(P), Row.one_hot(2)) == 0.25  # transformers#32867: a token that was chosen is kept with p(x)
    assert overlap(Row(P), Row(P)) == pytest.approx(1.0)
    assert overlap(Row(np.full(10, 0.1)), Row(np.full(10, 0.1))) == pytest.approx(1.0)  # mlx-lm PR#1709


def test_the_identity_fails_for_a_wrong_rule() -> None:
    """A draft picked greedily but tested with its softmax (transformers#32867)."""
    x = int(np.argmax(Q))
    a = acceptance(P[x], Q[x])
    wrong = a * np.eye(3)[x] + (1 - a) * residual(Row(P), Row(Q)).probs
    assert np.allclose(wrong, [0.375, 0.3125, 0.3125])
    right = output_of(P, np.eye(3)[x])
    assert np.allclose(right, P, atol=1e-15)


def test_empty_residual_falls_back_to_the_target() -> None:
    """Reported as jaymody/speculative-sampling#5."""
    one_hot = Row(np.array([0.0, 1.0, 0.0]))
    assert residual(one_hot, one_hot).probs.tolist() == [0, 1, 0]
    assert residual(Row.one_hot(1), one_hot).best() == 1


def test_acceptance_of_a_token_that_cannot_be_drawn_is_no_nan() -> None:
    assert (acceptance(0.5, 0.0), acceptance(0.5, 1.0), acceptance(0.0, 0.0)) == (1.0, 0.5, 1.0)


def test_temperature_comes_first() -> None:
    """At temperature 0 the draft's token is kept only if it is the target's argmax (jaymody/speculative-sampling#9)."""
    p = to_probs(np.log(np.array([0.3, 0.5, 0.2], dtype=np.float32)), Sampling(0))
    token, q = draw_from(np.log(np.array([0.8, 0.1, 0.1], dtype=np.float32)), Sampling(0), np.random.default_rng(0))
    for rule in Rule("probabilistic"), Rule("deterministic"), Rule("greedy"):
        assert decide(rule, p, token, q, np.random.default_rng(1)) == (False, 1), rule


def test_greedy_drafts_are_one_hot() -> None:
    """Reported as transformers#32867."""
    token, q = draw_from(np.log(Q).astype(np.float32), Sampling(0), np.random.default_rng(0))
    assert token == 2 and q.prob(2) == 1.0 and q.prob(0) == 0.0


def decide(rule: Rule, p: Floats, x: int, q: Row, rng: np.random.Generator) -> tuple[bool, int]:
    """Whether x is kept, and the emitted token."""
    tested = token_test(rule, Row(p), x, q, rng)
    return tested.kept, x if tested.kept else replacement(rule, Row(p), q, tested, rng)


def acceptance_by_simulation(rule: Rule, p: Floats, q: Floats, n: int = 40_000) -> float:
    rng = np.random.default_rng(3)
    return sum(token_test(rule, Row(p), draw(q, rng), Row(q), rng).kept for _ in range(n)) / n


def test_probabilistic_keeps_the_overlap_and_deterministic_the_matches() -> None:
    """Σ min(p, q) = .45 here; .275 would mean that q was ignored (mlx-lm PR#1709 and vllm#40149)."""
    assert (Q * acceptances(P, Q)).sum() == pytest.approx(np.minimum(P, Q).sum()) == pytest.approx(0.45)
    assert (P * Q).sum() == pytest.approx(0.275)
    assert acceptance_by_simulation(Rule("probabilistic"), P, Q) == pytest.approx(0.45, abs=0.01)
    assert acceptance_by_simulation(Rule("deterministic"), P, Q) == pytest.approx(0.275, abs=0.01)
    flat = np.full(10, 0.1)
    assert acceptance_by_simulation(Rule("probabilistic"), flat, flat, 2_000) == 1.0
    assert acceptance_by_simulation(Rule("deterministic"), flat, flat) == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(("name", "exact"), [("probabilistic", True), ("deterministic", True), ("threshold", False)])
def test_lossless_rules_give_the_target_and_the_lossy_one_does_not(name: str, exact: bool) -> None:
    rng = np.random.default_rng(5)
    rule, row, n = Rule(name, tau=0.2), Row(Q), 40_000  # type: ignore[arg-type]
    counts = np.bincount([decide(rule, P, draw(Q, rng), row, rng)[1] for _ in range(n)], minlength=3) / n
    distance = 0.5 * float(np.abs(counts - P).sum())
    assert (distance < 0.01) == exact, distance


def test_a_token_that_q_could_not_give_is_refused_loudly() -> None:
    with pytest.raises(ValueError, match="not drawn from"):
        token_test(Rule(), Row(P), 0, Row.one_hot(1), np.random.default_rng(0))


def test_the_bonus_is_the_targets_own() -> None:
    rng = np.random.default_rng(0)
    drawn = np.bincount([bonus(Row(P), Rule(), rng) for _ in range(20_000)], minlength=3) / 20_000
    assert np.allclose(drawn, P, atol=0.015)
    assert bonus(Row(P), Rule("greedy"), rng) == 0


def test_plain_decoding_draws_from_the_target_by_position() -> None:
    drawn = [draw_shared(Row(P), Rule(), Noise(7).shared(position)) for position in range(20_000)]
    assert np.allclose(np.bincount(drawn, minlength=3) / 20_000, P, atol=0.015)
    assert draw_shared(Row(P), Rule("greedy"), Noise(7).shared(0)) == 0
    assert all(draw_shared(Row(np.array([0.0, 1.0, 0.0])), Rule(), Noise(s).shared(0)) == 1 for s in range(20))


def test_padding_behind_the_vocabulary_changes_no_plain_draw() -> None:
    """Reported as vllm#5203: 152,064 against 151,936 rows of the same tokens."""
    row, padded = Row(P), Row(np.append(P, np.zeros(5)))
    for position in range(200):
        noise = Noise(3)
        assert draw_shared(row, Rule(), noise.shared(position)) == draw_shared(padded, Rule(), noise.shared(position))


def test_sparse_and_full_rows_agree() -> None:
    full = np.array([0.0, 0.25, 0.0, 0.75])
    sparse = Row(np.array([0.25, 0.75]), np.array([1, 3]))
    assert [sparse.prob(i) for i in range(6)] == [0, 0.25, 0, 0.75, 0, 0]
    assert sparse.dense(4).tolist() == full.tolist()
    assert Row(full).dense(6).tolist() == [0, 0.25, 0, 0.75, 0, 0]
    assert Row(full).dense(4).tolist() == full.tolist() and Row(full).prob(9) == 0.0
    a = decide(Rule(), np.full(4, 0.25), 3, sparse, np.random.default_rng(1))
    b = decide(Rule(), np.full(4, 0.25), 3, Row(full), np.random.default_rng(1))
    assert a == b


def test_the_callers_logits_are_left_alone() -> None:
    logits = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    to_probs(logits, Sampling(0.7, top_k=2, top_p=0.9))
    summarise(logits)
    top_ids(logits, 2)
    assert logits.tolist() == [1.0, 2.0, 3.0]


def test_top_k_keeps_exactly_k_with_ties_by_id() -> None:
    probs = to_probs(np.array([1.0, 2.0, 2.0, 2.0], dtype=np.float32), Sampling(1.0, top_k=2))
    assert probs.tolist() == [0, 0.5, 0.5, 0]


def test_top_p_keeps_the_token_that_crosses() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.2], dtype=np.float32))
    assert np.allclose(to_probs(logits, Sampling(1.0, top_p=0.6)), [0.625, 0.375, 0])
    assert to_probs(logits, Sampling(1.0, top_p=1e-9)).tolist() == [1, 0, 0]


@pytest.mark.parametrize("bad", [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_unusable_logits_are_an_error_with_a_remedy(bad: list[float], temperature: float) -> None:
    with pytest.raises(RunError, match="no usable scores"):
        to_probs(np.array(bad, dtype=np.float32), Sampling(temperature))
    with pytest.raises(RunError, match="no usable scores"):
        draw_from(np.array(bad, dtype=np.float32), Sampling(temperature), np.random.default_rng(0))


def test_masked_tokens_have_probability_zero_and_no_nan_entropy() -> None:
    logits = np.array([0.0, -np.inf, 0.0], dtype=np.float32)
    assert to_probs(logits, Sampling(1.0)).tolist() == [0.5, 0, 0.5]
    assert summarise(logits).entropy_bits == pytest.approx(1.0)
    assert top_ids(logits, 10) == [0, 2]


def test_draw_never_gives_a_token_of_probability_zero() -> None:
    class Last:
        def random(self) -> float:
            return float(np.nextafter(1.0, 0.0))

    assert draw(np.array([0.3, 0.7, 0.0]), Last()) == 1  # type: ignore[arg-type]
    assert draw(np.array([0.0, 1.0]), np.random.default_rng(0)) == 1


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=40),
    st.floats(0.05, 2.0),
    st.integers(0, 50),
    st.floats(0.01, 1.0),
)
def test_to_probs_is_always_a_distribution_that_keeps_the_best(
    row: list[float], temperature: float, top_k: int, top_p: float
) -> None:
    logits = np.array(row, dtype=np.float32)
    probs = to_probs(logits, Sampling(temperature, top_k, top_p))
    assert probs.sum() == pytest.approx(1.0, abs=1e-12) and (probs >= 0).all()
    assert probs[int(np.argmax(logits))] > 0
    if top_k:
        assert np.count_nonzero(probs) <= top_k


def fully_sorted(logits: Logits, sampling: Sampling) -> Floats:
    """`to_probs` with a sort of the whole row."""
    order = np.argsort(-logits, kind="stable")
    scaled = (logits.astype(np.float64) - float(logits.max())) / sampling.temperature
    probs = np.exp(scaled)
    if 0 < sampling.top_k < len(probs):
        probs[order[sampling.top_k :]] = 0.0
    probs /= probs.sum()
    if sampling.top_p < 1.0:
        before = np.cumsum(probs[order]) - probs[order]
        probs[order[before >= sampling.top_p]] = 0.0
    out: Floats = probs / probs.sum()
    return out


def rows_of_every_kind(rng: np.random.Generator) -> Iterator[Logits]:
    """Peaked, flat, tied, with few possible tokens, with a token at the edge of what is looked at first."""
    for n in (1, 2, 50, 300, 5000):
        row = rng.normal(scale=4, size=n).astype(np.float32)
        yield row
        yield np.round(row)
        yield np.zeros(n, dtype=np.float32)
        yield np.where(rng.random(n) < 0.9, np.float32(-np.inf), row) if n > 1 else row
        yield np.float32(100) * row
        yield np.float32(0.01) * row
        yield (row.max() - np.arange(n) % 7 * 3).astype(np.float32)


@pytest.mark.parametrize("top_p", [1.0, 0.999999, 0.95, 0.5, 1e-6])
@pytest.mark.parametrize("top_k", [0, 1, 40])
def test_what_top_k_and_top_p_keep_is_what_a_full_sort_keeps(top_k: int, top_p: float) -> None:
    rng = np.random.default_rng(top_k)
    for row in rows_of_every_kind(rng):
        if not np.isfinite(row.max()):
            continue
        for temperature in (0.3, 0.8, 2.0):
            sampling = Sampling(temperature, top_k, top_p)
            found, wanted = to_probs(row, sampling), fully_sorted(row, sampling)
            assert np.array_equal(found > 0, wanted > 0), (len(row), temperature)
            np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_a_draw_is_the_one_of_the_cumulative_sum() -> None:
    rng = np.random.default_rng(1)
    for n in (1, 255, 256, 257, 3000):
        probs = rng.dirichlet(np.full(n, 0.1))
        probs[rng.random(n) < 0.3] *= n == 1
        for seed in range(50):
            u = np.random.default_rng(seed).random()
            cumulative = np.cumsum(probs)
            wanted = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
            assert draw(probs, np.random.default_rng(seed)) == wanted


def test_a_draw_by_position_is_the_winner_of_the_whole_race() -> None:
    rng = np.random.default_rng(2)
    for n in (2, 30, 3000):
        for position in range(60):
            full = rng.dirichlet(np.full(n, 0.2))
            ids = np.sort(rng.choice(n, size=max(1, n // 3), replace=False))
            for row in (Row(full), Row(full[ids] / full[ids].sum(), ids)):
                p = row.dense(n)
                with np.errstate(divide="ignore"):
                    race = -np.log1p(-Noise(4).shared(position).random(n)) / p
                assert draw_shared(row, Rule(), Noise(4).shared(position)) == int(np.argmin(race))


def test_sparse_and_full_rows_have_the_same_overlap_and_residual() -> None:
    rng = np.random.default_rng(6)
    for _ in range(300):
        p, q = random_pair(rng)
        forms = [[Row(x), Row(x[x > 0], np.flatnonzero(x))] for x in (p, q)]
        wanted = np.maximum(p - q, 0)
        for a, b in itertools.product(*forms):
            assert overlap(a, b) == pytest.approx(np.minimum(p, q).sum(), abs=1e-12)
            if wanted.sum() > 1e-9:
                np.testing.assert_allclose(residual(a, b).dense(len(p)), wanted / wanted.sum(), atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=400), st.integers(1, 12))
def test_top_ids_are_those_of_a_full_sort(row: list[float], n: int) -> None:
    logits = np.array(row, dtype=np.float32)
    assert top_ids(logits, n) == [int(i) for i in np.argsort(-logits, kind="stable")[:n]]


def test_summary_agrees_with_double_precision() -> None:
    logits = np.random.default_rng(0).normal(scale=5, size=49_152).astype(np.float32)
    p = np.exp(logits.astype(np.float64) - logits.max())
    p /= p.sum()
    summary = summarise(logits)
    assert summary.entropy_bits == pytest.approx(float(-(p * np.log2(p)).sum()), abs=1e-4)
    assert float(logits[7]) - summary.log_normaliser == pytest.approx(float(np.log(p[7])), abs=1e-5)


def test_promises() -> None:
    hot, cold = Sampling(0.8), Sampling(0.0)
    assert promise(Rule("probabilistic"), hot).kind == "EXACT"
    assert promise(Rule("deterministic"), hot).kind == "EXACT"
    assert promise(Rule("greedy"), cold).kind == "EXACT"
    assert promise(Rule("greedy"), hot).kind == "LOSSY"
    assert promise(Rule("threshold", 0.3), hot).kind == "LOSSY"


def test_the_expected_acceptance_is_the_best_tokens_chance_after_the_settings() -> None:
    logits = np.log(np.array([0.1, 0.6, 0.3], dtype=np.float32))

    def expected(sampling: Sampling) -> float:
        return expected_acceptance(logits, row_of(logits, sampling))

    assert expected(Sampling(1.0)) == pytest.approx(0.6)
    assert expected(Sampling(1.0, top_k=2)) == pytest.approx(0.6 / 0.9)
    assert expected(Sampling(0.5)) == pytest.approx(0.36 / 0.46)
    # If the settings leave one token, the probability before the settings is used.
    for sure in (Sampling(0.0), Sampling(1.0, top_k=1), Sampling(1.0, top_p=0.1)):
        assert expected(sure) == pytest.approx(0.6)


def test_a_row_is_drawn_from_by_its_ids() -> None:
    row = Row(np.array([0.25, 0.75]), np.array([4, 9]))
    drawn = [draw_row(row, np.random.default_rng(seed)) for seed in range(400)]
    assert set(drawn) == {4, 9} and drawn.count(9) / 400 == pytest.approx(0.75, abs=0.07)
    # Whatever the row, it takes one number of the stream: the tokens behind do not depend on how many were possible.
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    assert draw_row(Row.one_hot(7), rng) == 7 and draw_row(row, other) in (4, 9)
    assert rng.random() == other.random()


@pytest.mark.parametrize(
    "row", [Row(np.array([0.5, 0.2, 0.3])), Row(np.array([0.4, 0.6]), np.array([2, 5])), Row.one_hot(3)]
)
def test_probabilities_of_several_tokens_are_those_of_each(row: Row) -> None:
    ids = [5, 0, -1, 2, 3, 3, 100, 1]
    assert row.probs_of(ids) == [row.prob(i) for i in ids]
    assert row.probs_of([]) == []
