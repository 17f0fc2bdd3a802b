"""A simulated network costs time and changes nothing else."""

import threading
from dataclasses import replace
from itertools import chain, repeat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from specviz.core.decoding import speculative
from specviz.core.errors import StoppedError
from specviz.core.events import Done, Metrics, RunStarted
from specviz.core.ports import Distant, Streaming, Target
from specviz.core.settings import Rule, Sampling, Settings
from specviz.targets.simulated_network import POLL_S, SimulatedNetwork
from tests.toys import TOKENIZER, asked, block, toy_draft, toy_target


class Clock:
    """A clock that advances only in a pause, by a little more than requested."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.now, self.late_s = 100.0, late_s
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds + self.late_s


def far(rtt_ms: float, jitter_ms: float = 0.0, *, seed: int = 0, clock: Clock | None = None) -> SimulatedNetwork:
    clock = clock or Clock()
    return SimulatedNetwork(toy_target(), rtt_ms, jitter_ms, seed=seed, pause=clock.pause, clock=clock)


def waited(target: Target, calls: int = 1) -> list[float | None]:
    return [target.verify(asked([0, 1], [block(2)], Sampling(), Rule())).network_ms for _ in range(calls)]


def test_every_call_waits_one_round_trip_in_short_pauses() -> None:
    clock = Clock()
    assert waited(far(130, clock=clock), 2) == pytest.approx([130, 130])
    assert clock.pauses == pytest.approx([POLL_S, POLL_S, 0.03] * 2)


def test_what_is_told_is_what_was_waited_not_what_was_drawn() -> None:
    clock = Clock(late_s=0.004)
    began = clock.now
    [told] = waited(far(30, clock=clock))
    assert told == pytest.approx(34) and clock.now - began == pytest.approx(0.034)


def test_the_real_clock_waits_at_least_as_long_as_drawn() -> None:
    target = SimulatedNetwork(toy_target(), 3.0)
    assert all(ms is not None and ms >= 3.0 for ms in waited(target, 5))


@hypothesis_settings(deadline=None)
@given(
    st.floats(0, 2000).flatmap(lambda rtt: st.tuples(st.just(rtt), st.floats(0, min(rtt, 1000)))),
    st.integers(0, 2**63 - 1),
)
def test_a_delay_is_never_below_zero_nor_further_off_than_the_jitter(network: tuple[float, float], seed: int) -> None:
    rtt, jitter = network
    for ms in waited(far(rtt, jitter, seed=seed), 8):
        assert ms is not None and ms >= 0 and abs(ms - rtt) <= jitter + 1e-6


def test_the_mean_delay_is_the_round_trip_and_each_call_draws_its_own() -> None:
    delays = np.array(waited(far(100, 80), 400))
    assert len(set(delays)) == 400
    assert delays.mean() == pytest.approx(100, abs=10) and delays.min() < 40 and delays.max() > 160


def test_equal_seeds_give_equal_delays_and_a_reset_begins_them_anew() -> None:
    target = far(100, 50, seed=7)
    first = waited(target, 5)
    target.reset()
    assert waited(target, 5) == pytest.approx(first) and waited(far(100, 50, seed=7), 5) == pytest.approx(first)
    assert waited(far(100, 50, seed=8), 5) != pytest.approx(first)


@pytest.mark.parametrize("jitter_ms", [-1.0, 11.0])
def test_a_jitter_that_the_round_trip_does_not_hold_is_refused(jitter_ms: float) -> None:
    with pytest.raises(ValueError, match="between 0 and the round trip of 10 ms"):
        SimulatedNetwork(toy_target(), 10, jitter_ms)


def test_it_passes_for_the_target_itself_and_says_that_it_is_further_off() -> None:
    near = toy_target()
    target = SimulatedNetwork(near, 5, 2)
    assert (target.name, target.tokenizer) == (near.name, near.tokenizer)
    assert target.capabilities == replace(near.capabilities, simulated_rtt_ms=5, simulated_jitter_ms=2)
    assert target.guarantee(Sampling(0.7), Rule("threshold")) == near.guarantee(Sampling(0.7), Rule("threshold"))
    assert isinstance(target, Distant) and not isinstance(near, Distant) and not isinstance(target, Streaming)
    assert target.near is near


def run(target: Target, settings: Settings) -> list[RunStarted | Metrics | Done]:
    events = speculative(toy_draft(), target, TOKENIZER.encode("the"), settings)
    return [e for e in events if isinstance(e, RunStarted | Metrics | Done)]


@hypothesis_settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.8, 1.5]))
def test_the_text_is_the_same_with_and_without_the_network(seed: int, temperature: float) -> None:
    settings = Settings(target="toy", draft="toy", temperature=temperature, seed=seed, max_tokens=12)
    here, there = run(toy_target(), settings)[-1], run(far(80, 40, seed=seed), settings)[-1]
    assert isinstance(here, Done) and isinstance(there, Done)
    assert here.token_ids == there.token_ids and here.total_accepted == there.total_accepted


def test_the_parts_of_a_round_still_add_up_to_its_wall_time() -> None:
    started, *rounds, done = run(SimulatedNetwork(toy_target(), 4.0, 2.0), Settings(target="toy", max_tokens=12))
    assert isinstance(started, RunStarted) and (started.simulated_rtt_ms, started.simulated_jitter_ms) == (4.0, 2.0)
    for metrics in rounds:
        assert isinstance(metrics, Metrics)
        split = metrics.split
        assert split.network_ms is not None and split.network_ms >= 2.0
        assert split.verify_ms == (split.network_ms or 0) + (split.target_ms or 0)
        assert split.other_ms >= 0, "what was waited is in the wall time, and in one part only"
    assert isinstance(done, Done) and done.total.network_ms == pytest.approx(
        sum(m.split.network_ms or 0 for m in rounds if isinstance(m, Metrics))
    )


def test_a_run_that_is_stopped_while_it_waits_ends_as_stopped() -> None:
    answers = chain([False, False], repeat(True))
    clock = Clock()

    def cancelled() -> bool:
        return next(answers)

    target = SimulatedNetwork(toy_target(), 2000, cancelled=cancelled, pause=clock.pause, clock=clock)
    with pytest.raises(StoppedError, match="simulated network"):
        waited(target)
    assert clock.pauses == [POLL_S, POLL_S], "it is asked between short pauses"


def test_the_loop_turns_a_stop_on_the_way_into_an_end() -> None:
    entered, stop, ended = threading.Event(), threading.Event(), threading.Event()
    events: list[object] = []

    def cancelled() -> bool:
        entered.set()
        return stop.is_set()

    def decode() -> None:
        # Far longer than the time limit of the test: it ends only if the wait is cancelled.
        target = SimulatedNetwork(toy_target(), 3_600_000, cancelled=cancelled)
        events.extend(run(target, Settings(target="toy", draft="toy")))
        ended.set()

    thread = threading.Thread(target=decode, daemon=True)
    thread.start()
    assert entered.wait(20)
    stop.set()
    assert ended.wait(20)
    thread.join()
    last = events[-1]
    assert isinstance(last, Done) and last.finish_reason == "stopped" and last.total_tokens == 0


def test_no_delay_is_no_pause() -> None:
    clock = Clock()
    assert waited(far(0, clock=clock)) == [0.0] and not clock.pauses
