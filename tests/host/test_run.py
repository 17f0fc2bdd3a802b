"""A run from the caller's side: which events a pace holds back, and what a recording contains."""

from __future__ import annotations

import threading

import pytest

from specviz.core.events import DraftToken, Event, Metrics
from specviz.core.settings import Settings
from specviz.host.job import Job
from specviz.host.run import Run
from specviz.record.pace import Pace
from specviz.record.trace import parse
from tests.views.scripted import Story


class Nobody:
    """A host without models."""

    def position(self, job: Job) -> int:
        return 0

    def withdraw(self, job: Job) -> None: ...


@pytest.fixture
def clock() -> list[float]:
    """The current time for a run, in a list of one number."""
    return [50.0]


@pytest.fixture
def run(clock: list[float]) -> Run:
    return Run(Settings(), "hello", Nobody(), abandoned_after_s=10.0, clock=lambda: clock[0])


def put(run: Run, events: list[Event]) -> None:
    for event in events:
        assert run.put(event)


def story(rounds: int = 3) -> Story:
    told = Story()
    for _ in range(rounds):
        told.round(["a", "b"], 1, "c")
    return told


def test_without_a_pace_everything_that_has_come_is_shown(run: Run) -> None:
    events = story().done().events
    put(run, events)
    assert run.rounds_computed == 3 and not run.state.rounds
    assert run.drain() == len(events) and run.drain() == 0
    run.finish()
    assert run.done and run.state.done is not None


def test_a_paused_run_is_not_done_until_all_of_it_is_shown(run: Run) -> None:
    run.pace.pause()
    put(run, story().done().events)
    run.finish()
    assert run.drain() == 1 and run.state.started is not None
    assert not run.done and run.phase == "finished" and run.rounds_computed == 3 and not run.state.nodes
    run.pace.resume()
    run.drain()
    assert run.done and len(run.state.rounds) == 3


def test_a_paused_run_that_is_looked_at_is_not_abandoned_and_one_that_is_not_is(run: Run, clock: list[float]) -> None:
    run.pace.pause()
    put(run, story().events)
    for _ in range(5):
        clock[0] += 8.0
        run.drain()
        assert not run.cancelled() and not run.state.nodes
    clock[0] += 10.5
    assert run.cancelled()


def test_stop_between_two_looks_at_a_full_queue_is_not_abandonment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class StoppedMeanwhile(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            before = self.is_set()
            self.set()
            return before

    monkeypatch.setattr("specviz.host.run._QUEUE_SIZE", 0)
    run._stop = StoppedMeanwhile()
    assert run.put(story().events[0]), "what a stopped run still computes is queued"


@pytest.mark.parametrize("pace", [Pace(paused=True), Pace(0.5)])
def test_stop_shows_all_that_was_computed_and_what_still_comes(run: Run, pace: Pace) -> None:
    run.pace = pace
    told = story()
    put(run, told.events)
    run.drain()
    assert not run.state.rounds
    run.stop()
    run.drain()
    assert len(run.state.rounds) == 3
    put(run, told.round(["a"], 1, "b").done("stopped").events[-5:])
    run.finish()
    run.drain()
    assert run.done and len(run.state.rounds) == 4 and run.state.finish_reason == "stopped"


def test_a_recording_holds_what_is_shown_in_whole_rounds(run: Run, clock: list[float]) -> None:
    events = story().done().events
    run.pace = Pace(1.0)
    put(run, events)
    run.drain()
    assert len(run.state.nodes) == 2, "a draft is shown"
    assert list(parse(run.trace_lines()).events) == events[:1], "and not recorded before its verdict"
    for _ in range(3):
        clock[0] += 0.5
        run.drain()
    recorded = parse(run.trace_lines()).events
    assert isinstance(recorded[-1], Metrics) and list(recorded) == events[: len(recorded)]
    assert sum(isinstance(e, Metrics) for e in recorded) == len(run.state.rounds) == 2
    run.stop()
    run.drain()
    assert list(parse(run.trace_lines()).events) == events


def test_a_recording_of_a_failure_holds_the_round_that_it_fell_into(run: Run) -> None:
    events = [*story(1).events, story(2).events[-5], *Story().failed("gone").events[1:]]
    assert isinstance(events[-2], DraftToken)
    put(run, events)
    run.drain()
    assert list(parse(run.trace_lines()).events) == events


def test_a_small_budget_loses_nothing_of_a_beat(run: Run) -> None:
    events = story().done().events
    run.pace = Pace(0.5)
    put(run, events)
    assert run.drain(budget=2) == 2 and run.drain(budget=2) == 1, "the rest of the beat, and no more"
