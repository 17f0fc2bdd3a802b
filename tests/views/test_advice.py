"""Advice follows from the run's own numbers, and is called an estimate."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.core.events import TimeSplit, Way
from specviz.core.tally import Tally
from specviz.record.state import RunState
from specviz.views.advice import ROUNDS_FOR_K, advice, best_k, wasted_drafts, what_is_slow
from tests.views.scripted import Story


def _run(
    k: int, accepted: list[int], split: TimeSplit, *, rounds: int = 40, baseline_tps: float | None = 20.0,
    way: Way | None = None, per_call_tps: float | None = None,
) -> RunState:  # fmt: skip
    """Rounds of K drafts with these acceptances in turn, each of which took `split`."""
    story = Story(baseline_tps, way=way, per_call_tps=per_call_tps)
    for i in range(rounds):
        story.round(["d"] * k, accepted[i % len(accepted)], "x")
    tally, state = Tally(baseline_tps), RunState()
    for event in story.events:
        if event.type == "metrics":
            event = tally.add(
                drafted=event.drafted, tested=event.tested, accepted=event.accepted, emitted=event.emitted, split=split,
                guarantee=event.guarantee,
            )  # fmt: skip
        state.apply(event)
    return state


def _split(draft: float, target: float) -> TimeSplit:
    return TimeSplit(draft + target, draft, 0.0, 0.0, target)


def test_a_large_k_that_is_hardly_accepted_is_advised_against() -> None:
    """K = 64, of which almost nothing is kept (llama.cpp#25908)."""
    state = _run(64, [1, 0, 1, 2, 0], _split(640, 60))
    estimate = best_k(state)
    assert estimate.k == 1, "the first is kept in 3 of 5, the second in 1 of 5, and each costs 10 ms"
    said = wasted_drafts(state)
    assert said.startswith("Wasted drafts: 99 % of the drafted tokens were thrown away (2,528 of 2,560).")
    assert "Estimate: K = 1 would give about" in said and "over 40 rounds" in said
    assert said.endswith("Plain decoding, at 20.0, would still be faster.") is (estimate.tokens_per_second < 20)


def test_the_estimate_is_what_was_counted_and_measured() -> None:
    # Positions 1 and 2 are kept in 1 and 1/2 of the rounds. A draft costs 10 ms, a block of 4 takes 60 ms to verify
    # and a plain token 50 ms: 2.5 tokens would have come in 20 + 55 ms, where 2.5 came in 100 ms.
    state = _run(4, [2, 1], _split(40, 60))
    estimate = best_k(state)
    assert (estimate.k, estimate.verify_shrinks) == (2, True)
    assert estimate.gain == pytest.approx(100 / 75)
    assert estimate.now == pytest.approx(25, rel=0.02)
    assert "still be faster" not in wasted_drafts(state)
    assert "Plain decoding, at 90.0, would still be faster." in wasted_drafts(
        _run(4, [2, 1], _split(40, 60), baseline_tps=90.0)
    )


def test_without_a_measured_plain_token_verification_time_is_assumed_constant() -> None:
    state = _run(4, [2, 1], _split(40, 60), baseline_tps=None)
    estimate = best_k(state)
    assert not estimate.verify_shrinks and estimate.gain == pytest.approx(100 / 80)
    assert "takes the same time" in wasted_drafts(state)


def test_for_a_server_the_time_of_a_plain_token_is_that_of_a_single_call() -> None:
    split = TimeSplit(100.0, 40.0, None, None, None, call_ms=60.0)
    streamed = _run(4, [2, 1], split, way="scoring", baseline_tps=200.0)
    assert not best_k(streamed).verify_shrinks
    called = _run(4, [2, 1], split, way="scoring", baseline_tps=200.0, per_call_tps=20.0)
    assert best_k(called).verify_shrinks and best_k(called).gain == pytest.approx(100 / 75)


def test_a_good_k_and_cheap_drafts_are_left_alone() -> None:
    assert wasted_drafts(_run(4, [4], _split(4, 60))) == ""
    assert wasted_drafts(_run(4, [1], _split(0.1, 50))) == "", "three of four are lost, and cost nothing"
    said = wasted_drafts(_run(16, [1], _split(0.1, 50)))
    assert said.startswith("Wasted drafts: 94 %") and "hardly faster" in said and "K =" not in said


def test_too_few_rounds_give_no_advice() -> None:
    split = _split(640, 60)
    assert best_k(_run(64, [0], split, rounds=ROUNDS_FOR_K - 1)) is None
    assert best_k(_run(64, [0], split, rounds=ROUNDS_FOR_K)) is not None
    assert advice(RunState()) == advice(Story().state()) == []
    assert best_k(_run(0, [0], split)) is None, "nothing was drafted"
    assert best_k(_run(4, [0], TimeSplit())) is None, "no time was measured"


def test_what_makes_a_run_slow_is_named_with_its_share() -> None:
    slow = what_is_slow(_run(4, [1], _split(140, 60)))
    assert slow == (
        "Slower than plain decoding: a round takes 200 ms for 2.00 tokens, plain decoding 100 ms for the same number. "
        "The largest part, 140 ms or 70 %, is drafting."
    )
    split = TimeSplit(100.0, 10.0, None, None, None, call_ms=90.0)
    server = _run(4, [0], split, way="scoring", baseline_tps=20.0)
    assert "Slower than streaming" in what_is_slow(server) and "the calls to the server" in what_is_slow(server)
    assert what_is_slow(_run(4, [4], _split(10, 60))) == "" == what_is_slow(_run(4, [0], _split(10, 60), rounds=4))


@settings(deadline=None)
@given(
    st.integers(1, 16).flatmap(lambda k: st.tuples(st.just(k), st.lists(st.integers(0, k), min_size=1, max_size=9))),
    st.floats(0, 500), st.floats(0.1, 500), st.one_of(st.none(), st.floats(0.5, 500)),
)  # fmt: skip
def test_the_advised_k_is_one_that_was_measured_and_never_slower(
    run: tuple[int, list[int]], draft: float, target: float, baseline: float | None
) -> None:
    k, accepted = run
    state = _run(k, accepted, _split(draft, target), rounds=ROUNDS_FOR_K, baseline_tps=baseline)
    estimate = best_k(state)
    assert 1 <= estimate.k <= k and estimate.gain >= 1 - 1e-9
    for said in advice(state):
        assert "nan" not in said and "inf" not in said


def test_drafts_that_end_early_count_with_their_real_length() -> None:
    story = Story()
    for _ in range(ROUNDS_FOR_K):
        story.round(["d"], 1, "x").round([], 0, "x")
    state = story.state()
    assert best_k(state).k == 1 and state.proposed == [ROUNDS_FOR_K]
