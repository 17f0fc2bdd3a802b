"""When events are shown: schedules of polls, pauses and steps over runs of many shapes."""

from __future__ import annotations

import threading
from collections import deque
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.core.events import DraftToken, Error, Event, Metrics, RunStarted, VerifyResult
from specviz.record.pace import Pace
from tests.views.scripted import Story

#: Drafted per round; 0 is a round without a draft, which has a verdict too.
BLOCKS = st.lists(st.integers(0, 3), max_size=6)


def told(blocks: list[int], end: str = "done") -> list[Event]:
    story = Story()
    for drafted in blocks:
        story.round(["a"] * drafted, drafted, "b")
    if end == "done":
        story.done()
    if end == "error":
        story.failed("no", "none")
    return story.events


def beat(event: Event) -> tuple[int, bool] | None:
    if isinstance(event, DraftToken | VerifyResult | Metrics):
        return event.round, not isinstance(event, DraftToken)
    return None


class Shown:
    """Polls like `Run.drain`."""

    def __init__(self, events: list[Event], pace: Pace) -> None:
        self.left, self.events, self.pace, self.now = deque(events), [], pace, 100.0  # type: ignore[var-annotated]

    def look(self, now: float | None = None) -> list[Event]:
        if now is not None:
            self.now = now
        self.pace.look(self.now)
        new: list[Event] = []
        while self.left and self.pace.allows(self.left[0]):
            new.append(self.left.popleft())
        self.events += new
        return new

    @property
    def rounds(self) -> int:
        return sum(isinstance(e, Metrics) for e in self.events)

    @property
    def drafts(self) -> int:
        return sum(isinstance(e, DraftToken) for e in self.events)


ACTS = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.01, 0.2, 0.7, 3.0, 500.0])),
    st.tuples(st.just("set"), st.sampled_from([None, 0.5, 1.0, 8.0])),
    st.tuples(st.sampled_from(["pause", "resume", "step"]), st.none()),
)


@given(BLOCKS, st.sampled_from(["done", "error", "cut"]), st.booleans(), st.lists(ACTS, max_size=30))
def test_every_schedule_shows_whole_beats_in_order_and_loses_nothing(
    blocks: list[int], end: str, paused: bool, acts: list[tuple[str, float | None]]
) -> None:
    events = told(blocks, end)
    shown = Shown(events, Pace(1.0, paused=paused))
    for act, value in acts:
        if act == "wait":
            shown.now += value or 0.0
        elif act == "set":
            shown.pace.set(value)
        else:
            getattr(shown.pace, act)()
        shown.look()
        assert shown.events == events[: len(shown.events)], "a prefix, in order"
        if shown.left and beat(shown.left[0]) is not None:
            assert beat(shown.left[0]) != beat(shown.events[-1]), "a beat is shown whole"
        else:
            assert not shown.left, "what belongs to no round never waits"
    shown.pace.set(None)
    shown.pace.resume()
    shown.look()
    assert shown.events == events, "nothing is lost"


@given(BLOCKS, st.integers(1, 40), st.sampled_from([0.5, 1.0, 2.0, 4.0, 8.0]))
def test_a_pace_shows_that_many_rounds_per_second_however_often_one_looks(
    blocks: list[int], looks_per_s: int, rate: float
) -> None:
    shown, finished = Shown(told(blocks), Pace(rate)), []
    shown.look()
    while shown.left:
        assert shown.now < 200.0
        new = shown.look(shown.now + 1 / looks_per_s)
        finished += [shown.now] * sum(isinstance(e, Metrics) for e in new)
    # A first round without a draft is shown at the first poll.
    assert len(finished) == len(blocks) - (blocks[:1] == [0])
    for n, at in enumerate(finished):
        late = at - finished[0] - n / rate
        assert abs(late) <= 1 / looks_per_s + 1e-6


def test_a_round_comes_in_two_beats_half_an_interval_apart() -> None:
    shown = Shown(told([2, 2, 0, 2]), Pace(0.5))
    assert [type(e) for e in shown.look(0.0)] == [RunStarted, DraftToken, DraftToken]
    assert shown.look(0.99) == []
    assert shown.look(1.0)[-1] == shown.events[-1] and shown.rounds == 1 and shown.drafts == 2
    assert shown.look(1.99) == []
    shown.look(2.0)
    assert (shown.rounds, shown.drafts) == (1, 4)
    shown.look(3.0)
    assert shown.rounds == 2
    assert shown.look(4.9) == [], "a round without a draft takes as long as any other"
    shown.look(5.0)
    assert shown.rounds == 3


def test_models_that_are_slower_than_the_pace_set_it_and_nothing_bursts_afterwards() -> None:
    started, *rest = told([1] * 9, "cut")
    shown = Shown([started], Pace(1.0))
    for look in range(5):
        shown.look(0.2 * look)
    shown.left += [e for e in rest if beat(e)[0] == 0]  # type: ignore[index]
    for look in range(5, 100):
        shown.look(0.2 * look)
    assert shown.rounds == 1
    shown.left += [e for e in rest if beat(e)[0] > 0]  # type: ignore[index]
    shown.look(20.0)
    assert (shown.rounds, shown.drafts) == (1, 2)
    shown.look(20.2)
    assert (shown.rounds, shown.drafts) == (1, 2), "the verdict is half a second behind the draft"


def test_a_tab_that_slept_does_not_catch_up_with_an_hour() -> None:
    shown = Shown(told([1] * 50), Pace(2.0))
    shown.look(0.0)
    shown.look(3600.0)
    assert shown.rounds <= 3


@given(BLOCKS.filter(bool), st.sampled_from([None, 0.5, 8.0]), st.integers(0, 60))
def test_a_step_shows_exactly_one_round_from_wherever_it_is_pressed(
    blocks: list[int], rate: float | None, looks: int
) -> None:
    shown = Shown(told(blocks), Pace(rate, paused=rate is None))
    for _ in range(looks):
        shown.look(shown.now + 0.1)
    shown.pace.pause()
    for more in range(1, len(blocks) + 2):
        before = shown.rounds
        shown.pace.step()
        for _ in range(20):
            shown.look(shown.now + 0.2)
        assert shown.rounds == min(before + 1, len(blocks)), more
        assert shown.pace.paused
        upto = sum(blocks[: shown.rounds])
        assert shown.drafts == upto, "nothing of the round behind it"


def test_a_stepped_round_shows_its_draft_first_and_a_second_step_does_not_wait() -> None:
    shown = Shown(told([2, 2, 2]), Pace(paused=True))
    shown.look(0.0)
    shown.pace.step()
    shown.look(0.2)
    shown.look(0.4)
    assert (shown.rounds, shown.drafts) == (0, 2)
    shown.look(0.7)
    assert (shown.rounds, shown.drafts) == (1, 2)
    shown.pace.step()
    shown.look(0.8)
    shown.pace.step()
    shown.look(0.9)
    assert (shown.rounds, shown.drafts) == (2, 6)


def test_a_step_that_is_ahead_of_the_models_waits_for_them() -> None:
    events = told([1, 1], "cut")
    shown = Shown(events[:1], Pace(paused=True))
    shown.pace.step()
    shown.look(1.0)
    shown.left += events[1:]
    for now in (2.0, 2.1, 3.0, 9.0):
        shown.look(now)
    assert shown.rounds == 1


def test_a_failure_within_a_round_is_shown_behind_its_draft() -> None:
    shown = Shown([*told([1])[:2], Error("RunError", "no", "none")], Pace(paused=True))
    shown.look()
    assert shown.drafts == 0
    shown.pace.step()
    assert [type(e) for e in shown.look()] == [DraftToken, Error] and not shown.left


def test_pausing_in_the_middle_of_a_round_freezes_it_there() -> None:
    shown = Shown(told([2, 2]), Pace(1.0))
    shown.look()
    shown.pace.pause()
    assert shown.look(shown.now + 60) == [] and (shown.rounds, shown.drafts) == (0, 2)
    shown.pace.resume()
    shown.look(shown.now + 0.2)
    assert (shown.rounds, shown.drafts) == (1, 2), "the verdict was due; the next draft is half a second behind it"


@pytest.mark.parametrize("act", ["pause", "resume", "step", "set"])
def test_buttons_in_one_thread_and_looks_in_another(act: str) -> None:
    events = told([1] * 300)
    shown = Shown(events, Pace())
    over = threading.Event()

    def press() -> None:
        while not over.is_set():
            shown.pace.set(None) if act == "set" else getattr(shown.pace, act)()

    thread = threading.Thread(target=press)
    thread.start()
    for _ in range(200):
        shown.look(shown.now + 0.01)
    over.set()
    thread.join()
    shown.pace.set(None)
    shown.pace.resume()
    shown.look()
    assert shown.events == events and [k for k, _ in groupby(map(beat, shown.events))] == [
        k for k, _ in groupby(map(beat, events))
    ]
