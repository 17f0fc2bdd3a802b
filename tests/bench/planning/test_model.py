"""The planner's maths: against a simulation, against sums, and at the values where it must be 1."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from specviz.bench.planning.inputs import Measured, by_hand, from_run
from specviz.bench.planning.model import (
    Against,
    Bill,
    Costs,
    answer,
    baseline_ms,
    best_k,
    break_even_draft_ms,
    break_even_map,
    break_even_rtt_ms,
    cost,
    draft_map,
    iid_speedups,
    iid_tokens_per_round,
    marginal,
    needed_tokens,
    round_ms,
    speedup,
    speedups,
)
from specviz.core.cost_model import VerifyCurve
from specviz.core.events import TimeSplit
from specviz.record.state import RunState
from tests.views.scripted import Story

AGAINST: tuple[Against, ...] = ("streaming", "one call per token")
KS = list(range(1, 17))

alphas = st.floats(0, 1)
times = st.floats(0.1, 500)
ks = st.integers(1, 16)
against = st.sampled_from(AGAINST)


def iid_speedup(alpha: float, k: int, draft_ratio: float) -> float:
    """(1 − α^(K+1)) / ((1 − α)(K·c + 1)): theorem 3.8 of Leviathan et al. 2023, with c = `draft_ratio`."""
    return float(iid_tokens_per_round(alpha, k)) / (k * draft_ratio + 1)


def _counted(kept: tuple[int, ...], rounds: int = 100, **more: Any) -> Measured:
    reached = sum([rounds, *kept[:-1]])
    known = Measured(
        source="draft → target", rounds=rounds, kept=kept, proposed=(rounds,) * len(kept), reached=(rounds, *kept[:-1]),
        alpha=sum(kept) / reached, plain_ms=100.0, draft_ms=10.0, verify=VerifyCurve.of([(0, 100), (4, 140)]),
    )  # fmt: skip
    return replace(known, **more)


@st.composite
def measurements(draw: st.DrawFn) -> Measured:
    rounds = draw(st.integers(1, 500))
    kept = tuple(sorted(draw(st.lists(st.integers(0, rounds), min_size=1, max_size=16)), reverse=True))
    proposed = tuple(sorted((draw(st.integers(n, rounds)) for n in kept), reverse=True))
    plain = draw(times)
    points = [(0, plain), *((n, draw(times)) for n in draw(st.sets(st.integers(1, 16), max_size=3)))]
    return _counted(
        kept, rounds, proposed=proposed, plain_ms=plain, verify=VerifyCurve.of(points), other_ms=draw(st.floats(0, 5))
    )


@given(alphas, ks)
def test_the_iid_formula_is_the_sum_and_the_closed_form(alpha: float, k: int) -> None:
    """Leviathan et al. 2023, equation 1; at α = 1 all K are kept."""
    tokens = float(iid_tokens_per_round(alpha, k))
    assert tokens == pytest.approx(1 + sum(alpha**j for j in range(1, k + 1)))
    assume(alpha < 0.999)
    assert tokens == pytest.approx((1 - alpha ** (k + 1)) / (1 - alpha))


def test_the_iid_formula_at_its_ends() -> None:
    assert iid_tokens_per_round(1.0, [1, 4, 16]).tolist() == [2, 5, 17]
    assert iid_tokens_per_round(0.0, [1, 4, 16]).tolist() == [1, 1, 1]


@pytest.mark.parametrize(("alpha", "k"), [(0.3, 1), (0.6, 4), (0.9, 8)])
def test_the_iid_formula_is_what_rounds_give(alpha: float, k: int) -> None:
    n = 200_000
    accepted = (np.random.default_rng(1).random((n, k)) < alpha).cumprod(axis=1).sum(axis=1)
    assert float(iid_tokens_per_round(alpha, k)) == pytest.approx(1 + accepted.mean(), abs=5 * accepted.std() / n**0.5)


def test_theorem_3_8_by_hand() -> None:
    """α = 0.8, γ = 4, c = 0.05: 3.3616 tokens per round that takes 1.2 target tokens."""
    assert iid_speedup(0.8, 4, 0.05) == pytest.approx(3.3616 / 1.2)


@given(st.floats(0.01, 1), ks, st.floats(0, 2))
def test_without_network_and_with_free_verification_the_measured_formula_is_theorem_3_8(
    alpha: float, k: int, c: float
) -> None:
    known = by_hand(alpha, 50.0, 50 * c, [(16, 50.0)])
    costs = Costs(0.0, known.draft_ms)
    assert speedup(known, k, costs) == pytest.approx(iid_speedup(alpha, k, c))
    assert float(iid_speedups(known, costs, k)) == pytest.approx(speedup(known, k, costs))


def test_tokens_per_round_count_the_rounds_that_kept_so_many() -> None:
    """80, 40 and 10 of 100 rounds kept one, two and three tokens or more."""
    known = _counted((80, 40, 10))
    assert known.tokens_per_round([1, 2, 3]) == pytest.approx([1.8, 2.2, 2.3])


def test_ten_accepted_in_43_rounds_is_1_233_tokens_per_round() -> None:
    known = _counted((10,), rounds=43)
    assert f"{float(known.tokens_per_round(1)):.3f}" == "1.233"


def test_beyond_the_measured_positions_the_last_rate_continues_and_is_called_extrapolated() -> None:
    known = _counted((80, 40))
    assert float(known.tokens_per_round(4)) == pytest.approx(1 + 0.8 + 0.4 + 0.2 + 0.1)
    assert [known.is_extrapolated(k) for k in (1, 2, 3)] == [False, False, True]


def test_a_rate_of_a_few_rounds_is_not_continued() -> None:
    """2 of 2 rounds kept the third position: that says nothing about the tenth."""
    known = _counted((20, 2, 2))
    assert float(known.at_least(4)) == pytest.approx(0.02 * 2 / 20)


def test_a_k_that_was_run_itself_has_the_tokens_of_its_own_rounds() -> None:
    """Copies come in runs: rounds of one keep more of them than the first positions of rounds of four do."""
    known = _counted((40, 20, 20, 20), direct=((1, 1.54), (4, 2.0)))
    assert known.tokens_per_round([1, 4]) == pytest.approx([1.54, 2.0])
    assert 1.6 < float(known.tokens_per_round(2)) < 1.6 * 1.1
    assert float(known.tokens_per_round(6)) == pytest.approx(2.0 + 0.4)


def test_without_kept_tokens_a_round_gives_one_token_at_any_k() -> None:
    assert _counted((0, 0)).tokens_per_round(KS) == pytest.approx(np.ones(16))


def test_a_draft_that_ends_early_pays_for_what_it_drafted_only() -> None:
    known = _counted((40, 10), proposed=(80, 20))
    assert known.drafted_per_round([1, 2]) == pytest.approx([0.8, 1.0])
    # 20 blocks of none at 100 ms, 60 of one at 110, 20 of two at 120.
    assert float(known.verify_ms(2)) == pytest.approx(110)


def test_the_curve_is_linear_between_its_points_and_never_falls_behind_them() -> None:
    curve = VerifyCurve.of([(8, 146), (0, 89), (4, 127)])
    assert curve([0, 2, 4, 8, 16]) == pytest.approx([89, 108, 127, 146, 184])
    assert VerifyCurve.of([(0, 90), (4, 80)])([4, 16]) == pytest.approx([80, 80])
    assert VerifyCurve.of([(0, 90)])([0, 16]) == pytest.approx([90, 90])


def test_points_that_are_close_are_averaged() -> None:
    assert VerifyCurve.of([(2, 90), (2, 110)])(2) == pytest.approx(100)
    curve = VerifyCurve.of([(0, 100), (0, 102), (1.2, 118), (1.21, 122)])
    assert curve.points[0] == (0, 101) and curve.points[1] == pytest.approx((1.205, 120)) and len(curve.points) == 2
    assert curve(16) < 400
    assert [length for length, _ in VerifyCurve.of([(0.3, 1), (0, 1)]).points] == [0, 0.3]


def test_a_speed_up_worked_out_by_hand() -> None:
    """K = 4: 40 ms of drafting, 140 of verifying, 60 in the network, for 2.5 tokens; a plain token takes 100 ms."""
    known, costs = _counted((80, 40, 20, 10)), Costs(60.0, 10.0)
    assert float(round_ms(known, costs, 4)) == pytest.approx(240)
    assert speedup(known, 4, costs) == pytest.approx(2.5 * 100 / 240)
    assert speedup(known, 4, costs, "one call per token") == pytest.approx(2.5 * 160 / 240)
    assert needed_tokens(known, 4, costs) == pytest.approx(2.4)


@given(measurements(), ks, times, times, st.floats(0.01, 100), against)
def test_a_slower_draft_is_never_faster(
    known: Measured, k: int, rtt: float, draft: float, more: float, way: Against
) -> None:
    fast, slow = (speedup(known, k, Costs(rtt, ms), way) for ms in (draft, draft + more))
    assert slow < fast or (slow == fast and float(known.drafted_per_round(k)) < 1e-9)


@given(measurements(), ks, times, times, against)
def test_at_the_break_even_draft_speed_the_speed_up_is_one(
    known: Measured, k: int, rtt: float, draft: float, way: Against
) -> None:
    found = break_even_draft_ms(known, k, Costs(rtt, draft), way)
    if found is None:
        assert speedup(known, k, Costs(rtt, 0.0), way) < 1 or float(known.drafted_per_round(k)) == 0
    else:
        assert abs(speedup(known, k, Costs(rtt, found), way) - 1) < 1e-9


@given(measurements(), ks, times, against)
def test_at_the_break_even_round_trip_the_speed_up_is_one(known: Measured, k: int, draft: float, way: Against) -> None:
    found = break_even_rtt_ms(known, k, Costs(0.0, draft), way)
    if found is None:
        assert all(speedup(known, k, Costs(rtt, draft), way) < 1 for rtt in (0.0, 100.0, 1e6))
    elif way == "one call per token" and found == 0:
        assert speedup(known, k, Costs(0.0, draft), way) >= 1 - 1e-12
    else:
        assert abs(speedup(known, k, Costs(found, draft), way) - 1) < 1e-9


@given(measurements(), ks, times, against)
def test_round_trips_count_against_speculation_beside_streaming_and_for_it_beside_calls(
    known: Measured, k: int, draft: float, way: Against
) -> None:
    found = break_even_rtt_ms(known, k, Costs(0.0, draft), way)
    assume(found is not None and 1e-3 < found < 1e9)
    assert found is not None
    near, far = (speedup(known, k, Costs(found * f, draft), way) for f in (0.5, 2.0))
    assert far < 1 < near if way == "streaming" else near < 1 < far


@given(ks, times, times, against)
def test_a_draft_that_is_never_right_is_slower(k: int, rtt: float, draft: float, way: Against) -> None:
    known = _counted((0,) * k)
    assert speedup(known, k, Costs(rtt, draft), way) < 1
    assert answer(known, Costs(rtt, draft), list(range(1, k + 1)), way).speculate is False


@given(measurements(), ks)
def test_far_away_the_gain_over_one_call_per_token_is_the_tokens_per_round(known: Measured, k: int) -> None:
    far = speedup(known, k, Costs(1e12, 10.0), "one call per token")
    assert far == pytest.approx(float(known.tokens_per_round(k)), rel=1e-6)
    assert speedup(known, k, Costs(1e12, 10.0), "streaming") < 1e-6


@pytest.mark.parametrize("way", AGAINST)
def test_the_maps_hold_the_speed_up_of_every_cell(way: Against) -> None:
    known, costs = _counted((80, 40, 20, 10)), Costs(60.0, 10.0)
    rtts, drafts = [0.0, 50.0, 300.0], [0.0, 25.0]
    over_rtt, over_draft = (
        break_even_map(known, costs, KS, rtts, way), draft_map(known, costs, KS, drafts, way)
    )  # fmt: skip
    assert over_rtt.shape == (3, 16) and over_draft.shape == (2, 16)
    for i, k in enumerate(KS):
        assert over_rtt[1, i] == pytest.approx(speedup(known, k, Costs(50.0, 10.0), way))
        assert over_draft[1, i] == pytest.approx(speedup(known, k, Costs(60.0, 25.0), way))


def test_a_call_to_a_server_is_a_plain_token_with_the_network_included() -> None:
    known, costs = _counted((80,), per_call_ms=160.0, network_included=True), Costs(20.0, 10.0)
    assert baseline_ms(known, costs, "streaming") == 100
    assert baseline_ms(known, costs, "one call per token") == 180


@given(measurements(), times, times, against)
def test_a_position_pays_where_it_raises_the_speed_up(known: Measured, rtt: float, draft: float, way: Against) -> None:
    costs = Costs(rtt, draft)
    steps = marginal(known, costs, KS, way)
    speed = [1.0, *speedups(known, costs, KS, way)]
    for before, after, step in zip(speed, speed[1:], steps, strict=False):
        assert step.gain == pytest.approx(after - before, abs=1e-9)
        if abs(after - before) > 1e-9:
            assert step.pays == (after > before)
    assert sum(s.tokens for s in steps) == pytest.approx(float(known.tokens_per_round(16)) - 1)


def test_marginal_gains_worked_out_by_hand() -> None:
    """Round of one: 10 + 110 = 120 ms for 1.8 tokens. A second position: 20 ms more, which at that rate is 0.3."""
    first, second = marginal(_counted((80, 40, 20, 10)), Costs(0.0, 10.0), [1, 2])
    assert (first.tokens, first.ms, first.cost_tokens) == pytest.approx((0.8, 20, 0.2))
    assert (second.tokens, second.ms, second.cost_tokens) == pytest.approx((0.4, 20, 0.3))
    assert first.pays and second.pays


@given(measurements(), times, times, against)
def test_the_best_k_is_the_best(known: Measured, rtt: float, draft: float, way: Against) -> None:
    costs = Costs(rtt, draft)
    best = best_k(known, costs, KS)
    assert speedup(known, best, costs, way) >= max(speedups(known, costs, KS, way)) - 1e-12


def test_the_verdict_has_a_measured_k_and_mentions_a_better_extrapolated_one() -> None:
    found = answer(_counted((95, 90)), Costs(0.0, 1.0), KS)
    assert found.k == 2 and found.speculate
    assert found.further is not None and found.further[0] > 2 and found.further[1] > found.speedup
    assert answer(by_hand(0.9, 100, 1, [(16, 120)]), Costs(0.0, 1.0), KS).further is None


def test_the_interval_comes_from_the_rounds_and_holds_what_they_would_give_again() -> None:
    """1.8 tokens: a coin of 0.8, whose 95 % interval over 100 rounds is ± 1.96 · 0.4 / √99."""
    assert _counted((80,)).tokens_interval(1) == pytest.approx((1.8 - 1.96 * 0.4 / 99**0.5, 1.8 + 1.96 * 0.4 / 99**0.5))
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(400):
        accepted = (rng.random((200, 4)) < 0.7).cumprod(axis=1)
        interval = _counted(tuple(map(int, accepted.sum(axis=0))), rounds=200).tokens_interval(4)
        assert interval is not None
        low, high = interval
        inside += low <= float(iid_tokens_per_round(0.7, 4)) <= high
    assert inside / 400 > 0.9


def test_an_interval_that_contains_1_is_no_answer() -> None:
    few = answer(_counted((3,), rounds=8), Costs(0.0, 24.0), [1])
    assert few.interval is not None and few.interval[0] < 1 < few.interval[1] and few.speculate is None
    assert answer(by_hand(0.375, 100, 24, [(4, 140)]), Costs(0.0, 24.0), [1]).interval is None


def test_the_verdict_says_what_would_change_it() -> None:
    found = answer(_counted((20, 5)), Costs(100.0, 30.0), [1, 2])
    assert (found.k, found.speculate) == (1, False)
    assert (found.tokens, found.needed) == pytest.approx((1.2, 2.4))
    assert found.rtt_ms is None and found.draft_ms is None
    near = answer(_counted((20, 5)), Costs(0.0, 30.0), [1, 2])
    assert near.draft_ms == pytest.approx(10) and near.speculate is False


BILL = Bill(2.0, 8.0, 100, 201)


def test_what_is_billed_by_hand() -> None:
    """201 tokens behind 100: the text is 200 long on average. A round that keeps one of one is 2 tokens."""
    known = _counted((100,))
    rounds = 201 / 2
    found = cost(known, 1, BILL, "scoring")
    assert found.streaming == pytest.approx((100 * 2 + 201 * 8) / 1e6 * 1000 / 201)
    assert found.per_call == pytest.approx((201 * 200 * 2 + 201 * 8) / 1e6 * 1000 / 201)
    assert found.speculative == pytest.approx(rounds * (201 * 2 + 8) / 1e6 * 1000 / 201)
    prefixes = cost(known, 1, BILL, "prefixes").speculative
    assert prefixes == pytest.approx(rounds * ((200 + 201) * 2 + 2 * 8) / 1e6 * 1000 / 201)
    assert cost(known, 1, BILL, "generating").speculative == pytest.approx(rounds * (400 + 16) / 1e6 * 1000 / 201)


@pytest.mark.parametrize("bill", [replace(BILL, prompt_price=None), replace(BILL, output_price=None)])
def test_without_a_price_nothing_is_known(bill: Bill) -> None:
    found = cost(_counted((100,)), 1, bill, "scoring")
    assert (found.streaming, found.per_call, found.speculative) == (None, None, None)


def test_a_price_of_0_is_a_price() -> None:
    assert cost(_counted((100,)), 1, Bill(0.0, 0.0, 100, 200), "scoring").speculative == 0


def _story(**more: Any) -> Story:
    story = Story(**more)
    for kept in (4, 2, 0, 3, 1) * 8:
        story.round(list("abcd"), kept, "x")
    return story


def test_a_run_is_read_as_it_was_counted() -> None:
    """Each round: 10 ms for 4 drafts, 30 of the target, 6 of the rule, 4 of the rest; 20 plain tokens a second."""
    state = _story().state()
    known = from_run(state)
    assert (known.rounds, known.kept, known.proposed) == (40, (32, 24, 16, 8), (40,) * 4)
    assert known.alpha == pytest.approx(state.sums.accepted / state.sums.tested)
    assert known.acceptance_by_position() == pytest.approx([0.8, 0.75, 2 / 3, 0.5])
    assert (known.plain_ms, known.draft_ms, known.other_ms) == pytest.approx((50, 2.5, 10))
    assert known.verify.points == ((0, 40), (4, 30)), "a round of no draft is a plain token"
    assert float(known.tokens_per_round(4)) == pytest.approx(state.latest.tokens_per_round)
    assert known.source == "toy → toy, K = 4" and not known.assumed


def test_the_plan_of_a_run_at_its_own_k_is_the_run() -> None:
    state = _story().state()
    known = from_run(state)
    assert known is not None
    assert speedup(known, 4, Costs(known.rtt_ms, known.draft_ms)) == pytest.approx(state.latest.speedup, rel=0.03)


def test_the_first_round_which_reads_the_prompt_is_in_no_time() -> None:
    state = _story().state()
    state.rounds[0] = replace(state.rounds[0], split=TimeSplit(5000.0, 900.0, 0.0, 0.0, 4000.0, 60.0))
    assert from_run(state) == from_run(_story().state())


def test_a_simulated_network_is_in_no_time_and_is_recorded() -> None:
    state = _story(baseline_tps=20.0, per_call_tps=5.0, network=(150.0, 0.0)).state()
    known = from_run(state)
    assert known is not None and known.rtt_ms == 150 and known.verify.points == ((0, 40), (4, 30))
    assert known.per_call_ms is None and not known.network_included
    assert speedup(known, 4, Costs(150.0, 2.5)) == pytest.approx(state.latest.speedup, rel=0.03)


def test_calls_that_are_not_split_include_the_network() -> None:
    known = from_run(_story(way="scoring", per_call_tps=8.0).state())
    assert known.network_included and known.per_call_ms == 125 and known.way == "scoring"
    assert known.verify.points == ((0, 115), (4, 30))


def test_acceptance_by_position_ends_where_too_few_rounds_reached() -> None:
    assert _counted((20, 8, 8)).acceptance_by_position() == pytest.approx([0.2, 0.4])
    assert by_hand(0.6, 89, 5, [(4, 127)]).acceptance_by_position() == pytest.approx([0.6] * 16)


def test_rare_block_lengths_are_not_points_of_the_curve() -> None:
    story = _story().round(["a"], 1, "x").round([], 0, "x")
    assert [length for length, _ in from_run(story.state()).verify.points] == [0, 4]


@pytest.mark.parametrize(
    "state",
    [
        RunState(),
        Story().state(),
        Story().round(["a"], 1, "b").state(),
        Story(None).round(["a"], 1, "b").round(["a"], 1, "b").state(),
        Story().round([], 0, "a").round([], 0, "b").state(),
    ],
)
def test_a_run_without_baseline_acceptance_or_times_is_not_a_source(state: RunState) -> None:
    assert from_run(state) is None


def test_an_assumption_accepts_every_position_with_the_same_probability() -> None:
    known = by_hand(0.6, 89, 5, [(4, 127), (16, 180)])
    assert known.tokens_per_round(KS) == pytest.approx(iid_tokens_per_round(0.6, KS))
    assert known.assumed and known.k == 16 and known.tokens_interval(4) is None
