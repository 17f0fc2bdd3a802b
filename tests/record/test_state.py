"""The state built from events: counts by position, rolling window, change log."""

import dataclasses

import pytest

from specviz.core.decoding import speculative
from specviz.core.events import BaselineKind, TimeSplit
from specviz.core.guarantee import Guarantee
from specviz.core.settings import Settings
from specviz.core.tally import WINDOW, Tally, rate
from specviz.record.state import RunState
from tests.toys import TOKENIZER, toy_draft, toy_target

EXACT = Guarantee("EXACT", "")


def add(tally: Tally, drafted: int, tested: int, accepted: int, wall_ms: float = 100.0):  # type: ignore[no-untyped-def]
    split = TimeSplit(wall_ms=wall_ms, draft_ms=10, target_ms=50)
    return tally.add(
        drafted=drafted, tested=tested, accepted=accepted, emitted=accepted + 1, split=split, guarantee=EXACT
    )


def test_rate_of_nothing_is_unknown() -> None:
    assert rate(0, 0) is None and rate(0, 3) == 0.0


def test_rolling_and_overall_differ_once_the_window_is_full() -> None:
    tally = Tally()
    for _ in range(WINDOW):
        add(tally, 4, 4, 4)
    last = [add(tally, 4, 1, 0) for _ in range(WINDOW)][-1]
    assert last.acceptance_rate == 0.0
    assert last.overall_acceptance_rate == pytest.approx(4 * WINDOW / (5 * WINDOW))
    assert last.accepted_per_round == 2.0 and last.tokens_per_round == 3.0


def test_speedup_is_against_the_measured_baseline_only() -> None:
    with_baseline, without = Tally(baseline_tps=10.0), Tally()
    for tally in (with_baseline, without):
        add(tally, 4, 4, 4, wall_ms=10_000.0)
    fast = add(with_baseline, 4, 4, 4, wall_ms=250.0)
    assert fast.effective_tps == pytest.approx(20.0) and fast.speedup == pytest.approx(2.0)
    assert add(without, 4, 4, 4).speedup is None


def test_a_slower_run_says_so() -> None:
    tally = Tally(baseline_tps=100.0)
    add(tally, 4, 4, 0)
    speedup = add(tally, 4, 4, 0).speedup
    assert speedup is not None and speedup < 1


def run_state(k: int = 4) -> tuple[RunState, list[int]]:
    state, logs = RunState(), []
    prompt = TOKENIZER.encode("the draft")
    for event in speculative(toy_draft(), toy_target(), prompt, Settings(k=k, max_tokens=80), seed=0):
        state.apply(event)
        logs.append(len(state.log))
    return state, logs


def test_the_change_log_rebuilds_the_tree() -> None:
    state, logs = run_state()
    assert logs == sorted(logs) and set(state.log) == set(range(len(state.nodes)))


def test_acceptance_by_position_counts_the_drafts_that_got_there() -> None:
    """The first position is not always 1 (llama.cpp PR#25818)."""
    state, _ = run_state()
    assert state.reached[0] >= state.reached[1] >= state.reached[-1]
    # A draft of one token at the end of the budget is kept, and no token follows it.
    assert state.kept[0] - 1 <= state.reached[1] <= state.kept[0]
    first = state.acceptance_by_position()[0]
    assert first is not None and 0 < first < 1
    assert sum(state.kept) == sum(r.accepted for r in state.rounds)


def test_a_refused_token_and_its_replacement_are_siblings() -> None:
    state, _ = run_state()
    for replaced in (n for n in state.nodes if n.status == "resampled"):
        refused = [n for n in state.nodes if n.status == "rejected" and n.round == replaced.round]
        assert [n.parent for n in refused] == [replaced.parent]
        assert replaced.sibling == refused[0].id and refused[0].sibling == replaced.id
    assert {n.status for n in state.nodes if n.sibling is not None} == {"rejected", "resampled"}


def test_what_a_decision_was_between_stands_at_its_node() -> None:
    state, _ = run_state()
    for node in state.nodes:
        tested = node.status in ("accepted", "rejected")
        assert (node.overlap is not None) == tested and bool(node.weighed) == (tested or node.status == "bonus")
        if node.weighed:
            own = next(c for c in node.weighed if c.token_id == node.token_id)
            assert (own.p, own.q) == (node.p, node.q)


def test_what_no_round_knows_is_unknown_in_the_sum_too() -> None:
    tally = Tally()
    for known in (None, None, 3.0):
        split = TimeSplit(wall_ms=10, network_ms=known, queue_ms=1.0, target_ms=None, call_ms=5.0)
        total = tally.add(drafted=1, tested=1, accepted=1, emitted=2, split=split, guarantee=EXACT).total
        assert total.network_ms == known and total.target_ms is None
    assert (total.queue_ms, total.call_ms, total.wall_ms) == (3.0, 15.0, 30.0)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (None, "plain decoding"),
        ("separate_run", "plain decoding"),
        ("streaming", "streaming"),
        ("per_call", "one call per token"),
    ],
)
def test_what_a_run_is_compared_with(kind: BaselineKind | None, words: str) -> None:
    state, _ = run_state()
    assert state.started is not None
    # Two equal speeds do not decide the kind: only the recorded kind does.
    state.started = dataclasses.replace(state.started, baseline_kind=kind, baseline_tps=2.0, per_call_tps=2.0)
    assert state.baseline == words


def test_behind_a_simulated_network_a_run_is_compared_with_what_is_on_this_side_of_it() -> None:
    state, _ = run_state()
    assert state.started is not None
    state.started = dataclasses.replace(state.started, baseline_tps=5.0, per_call_tps=5.0, simulated_rtt_ms=0.5)
    assert state.baseline == "plain decoding without the network"


@pytest.mark.parametrize("name", ["drafted", "tested", "accepted", "emitted"])
def test_the_running_sums_are_those_of_all_rounds(name: str) -> None:
    state, _ = run_state()
    assert getattr(state.sums, name) == sum(getattr(m, name) for m in state.rounds) > 0


def test_drafts_are_counted_by_position_also_where_the_rule_did_not_get_to() -> None:
    state, _ = run_state()
    assert sum(state.proposed) == state.sums.drafted
    assert state.proposed[0] == len(state.rounds)
    assert all(have >= reached for have, reached in zip(state.proposed, state.reached, strict=False))


def test_a_bill_that_no_round_knows_is_not_zero() -> None:
    tally, state = Tally(), RunState()
    state.apply(add(tally, 4, 4, 4))
    assert (state.sums.billed_prompt, state.sums.billed_completion, state.sums.unbilled) == (None, None, 1)
    state.apply(dataclasses.replace(add(tally, 4, 4, 4), billed_prompt_tokens=9, billed_tokens=9, requests=2))
    assert (state.sums.billed_prompt, state.sums.billed_completion, state.sums.unbilled) == (9, None, 1)
    assert (state.sums.requests, state.sums.asking) == (2, 1)
