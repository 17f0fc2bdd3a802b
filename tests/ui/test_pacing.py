"""The controls of pace and pause, by the page's model; a page run of AppTest is one poll."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from specviz.core.events import VerifyResult
from specviz.ui import session
from specviz.ui.session import Visit
from tests.ui.fakes import FakeRun

FAKE = str(Path(__file__).parent / "fake_app.py")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that scripted runs see; a list of one."""
    now = [1000.0]
    monkeypatch.setattr("tests.ui.fakes.monotonic", lambda: now[0])
    return now


def _page() -> AppTest:
    return _look(AppTest.from_file(FAKE, default_timeout=30.0))


def _look(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def _press(page: AppTest, label: str) -> AppTest:
    next(b for b in page.main.button if b.label == label).click()
    return _look(page)


def _choose(page: AppTest, pace: str) -> AppTest:
    page.selectbox(key="pace").set_value(pace)
    return _look(page)


def _start(page: AppTest, prompt: str = "endless") -> AppTest:
    page.text_area(key="prompt").set_value(prompt)
    return _press(page, "Run")


def _visit(page: AppTest) -> Visit:
    return session.of(page.session_state["visit"])


def _run(page: AppTest) -> FakeRun:
    run = _visit(page).run
    assert isinstance(run, FakeRun)
    return run


def _rounds(page: AppTest) -> int:
    return len(_run(page).state.rounds)


def _line(page: AppTest) -> str:
    """The text over the bar."""
    return "\n".join(str(p.proto.text) for p in page.get("progress"))


def _labels(page: AppTest) -> set[str]:
    return {b.label for b in page.main.button}


def test_pause_step_and_resume_are_there_while_a_run_lives() -> None:
    page = _page()
    assert _labels(page) & {"Pause", "Resume", "Step"} == set()
    assert page.selectbox(key="pace").value == "free", "the pace can be chosen before"
    _start(page)
    assert {"Pause", "Step"} <= _labels(page)
    _press(page, "Pause")
    assert {"Resume", "Step"} <= _labels(page) and "Pause" not in _labels(page)
    _press(page, "Resume")
    assert {"Pause", "Step"} <= _labels(page)
    _press(page, "Stop")
    assert _labels(_look(page)) & {"Pause", "Resume", "Step"} == set()


def test_a_paused_run_stands_still_and_says_where_the_models_are() -> None:
    page = _press(_start(_page()), "Pause")
    nodes, rounds = len(_run(page).state.nodes), _rounds(page)
    for _ in range(3):
        _look(page)
    assert len(_run(page).state.nodes) == nodes
    assert f"Paused at round {rounds}. The models are ahead, at round" in _line(page)
    _press(page, "Resume")
    assert _rounds(page) > rounds and "Paused" not in _line(page)


def test_a_step_pauses_and_shows_exactly_one_more_round(clock: list[float]) -> None:
    page = _start(_page())
    _press(page, "Pause")
    for _ in range(3):
        before = _rounds(page)
        _press(page, "Step")
        for _ in range(4):
            clock[0] += 0.5
            _look(page)
        assert _rounds(page) == before + 1
    _press(page, "Resume")
    # With a round whose verdict had come in part.
    before = len({e.round for e in _run(page)._taken if isinstance(e, VerifyResult)})
    _press(page, "Step")
    for _ in range(4):
        clock[0] += 0.5
        _look(page)
    assert _rounds(page) == before + 1 and _run(page).pace.paused, "also when it was running"


def test_a_chosen_pace_holds_for_this_run_and_for_the_next(clock: list[float]) -> None:
    page = _start(_choose(_page(), "2"))
    for _ in range(40):
        clock[0] += 0.1
        _look(page)
    assert _rounds(page) in (8, 9)
    assert "2 rounds/s. The models are ahead" in _line(page)
    _press(page, "Stop")
    assert "Stopped by you" in _look(page).warning[0].value
    _start(page)
    assert _run(page).pace.rounds_per_s == 2.0 and page.selectbox(key="pace").value == "2"
    _choose(page, "free")
    assert _run(page).pace.rounds_per_s is None


def test_step_by_step_waits_before_the_first_round_and_resume_leaves_it(clock: list[float]) -> None:
    page = _start(_choose(_page(), "step"))
    _look(page)
    assert _rounds(page) == 0 and _run(page).state.started and not _run(page).state.nodes
    assert "Paused before the first round. The models are ahead" in _line(page)
    _press(page, "Step")
    clock[0] += 1.0
    _look(page)
    assert _rounds(page) == 1 and page.selectbox(key="pace").value == "step"
    _press(page, "Resume")
    assert page.selectbox(key="pace").value == "free", "what is chosen is what happens"
    _look(page)
    assert _rounds(page) > 3
    _choose(page, "step")
    assert "Resume" in _labels(page), "chosen during a run, it pauses"
    _choose(page, "4")
    assert "Pause" in _labels(page), "and any other pace goes on"


def test_another_pace_leaves_a_paused_run_paused() -> None:
    page = _press(_start(_page()), "Pause")
    _choose(page, "4")
    assert "Resume" in _labels(page) and _run(page).pace.rounds_per_s == 4.0


def test_nothing_is_finished_before_it_is_shown() -> None:
    page = _start(_choose(_page(), "step"), "talk")
    for _ in range(50):
        _look(page)
    run = _run(page)
    assert run.phase == "finished" and not run.done and _visit(page).live
    assert "Paused before the first round. The models have finished, at round 40." in _line(page)
    assert not page.success and "Stop" in _labels(page)
    _press(page, "Stop")
    _look(page)
    assert run.done and _rounds(page) == 40, "all that was computed is shown at once"
    assert page.success[0].value.startswith("Finished:"), "the models had: nobody stopped them"


def test_stop_while_paused_shows_what_was_computed_and_ends() -> None:
    page = _press(_start(_page()), "Pause")
    for _ in range(5):
        _look(page)
    computed = _run(page).rounds_computed
    assert _rounds(page) < computed
    _press(page, "Stop")
    enabled = {b.label: not b.disabled for b in page.main.button}
    assert enabled["Run"] and not enabled["Stop"] and "Step" not in enabled, "nothing has to look once more for that"
    assert _run(page).done and _rounds(page) == computed and "Stopped by you" in page.warning[0].value


def test_a_reload_finds_the_pace_and_the_pause() -> None:
    page = _press(_start(_choose(_page(), "1")), "Pause")
    visit = _visit(page)
    visit.connected = lambda: False
    visit.left(0.0).join()
    heir = visit.hand_over(visit.browser)
    assert heir is not None and heir.pacing == "1" and heir.run is not None and heir.run.pace.paused


def test_one_click_that_is_reported_twice_is_one_step(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    visit = _visit(_start(_choose(_page(), "step")))
    drawn = visit.steps
    monkeypatch.setattr("specviz.ui.session._REPEAT_S", float("inf"))
    for _ in range(3):
        visit.step(drawn)
    assert visit.steps == drawn + 1
    visit.step(visit.steps)
    assert visit.steps == drawn + 2, "the button was drawn anew: another click"
    monkeypatch.setattr("specviz.ui.session._REPEAT_S", 0.0)
    visit.step(drawn)
    assert visit.steps == drawn + 3, "so late, it is another click on a button that was not drawn anew"
    assert visit.run is not None
    for _ in range(6):
        clock[0] += 0.6
        visit.run.drain()
    assert len(visit.run.state.rounds) == 3


@pytest.fixture(autouse=True)
def _clicks_as_fast_as_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_HOLD_REPEAT_S", 0.0)


def test_a_click_that_is_reported_twice_does_not_undo_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_HOLD_REPEAT_S", 60.0)
    visit = session.Visit()
    assert [visit.is_repeat() for _ in range(3)] == [False, True, True]
    monkeypatch.setattr(session, "_HOLD_REPEAT_S", 0.0)
    assert not visit.is_repeat()
