"""What is polled and what is read out at each stage of a run, by the page's model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from specviz.ui import pacing, run_view
from tests.ui.fakes import SCENES
from tests.ui.test_live_page import _components, _page, _run, _until_done, _visit


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The poll intervals, in seconds, of the fragments that the run's part of the page has declared."""
    return _polls_of(run_view, monkeypatch)


def _polls_of(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    declared: list[float] = []

    def fragment(*, run_every: float | None) -> Callable[[Callable[[], None]], Callable[[], None]]:
        if run_every is not None:
            declared.append(run_every)
        return lambda draw: draw

    class Streamlit:
        def __getattr__(self, name: str) -> Any:
            return fragment if name == "fragment" else getattr(st, name)

    monkeypatch.setattr(module, "st", Streamlit())
    return declared


def _said(page: AppTest) -> str:
    return str(_components(page)["specviz_status"]["text"])


def test_before_a_run_begins_only_the_wait_is_polled(polls: list[float]) -> None:
    _run(_page(), "queued")
    assert polls == [run_view.NUMBERS_POLL_S]


def test_during_the_baseline_the_page_polls_as_during_the_run_of_a_slow_target(
    polls: list[float],
) -> None:
    _run(_page(), "baseline")
    normal = run_view.TREE_POLL_S, run_view.NUMBERS_POLL_S, run_view.CHARTS_POLL_S
    assert sorted(set(polls)) == [2 * s for s in normal]


def test_a_run_that_has_begun_is_polled_and_one_that_has_ended_is_not(polls: list[float]) -> None:
    page = _run(_page(), "talk")
    assert sorted(set(polls)) == [run_view.TREE_POLL_S, run_view.NUMBERS_POLL_S, run_view.CHARTS_POLL_S]
    page = _until_done(page)
    polls.clear()
    page.run()
    assert polls == []


def test_the_buttons_of_a_run_are_drawn_again_as_long_as_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A click that was sent with another fragment's request runs its callback and draws nothing here."""
    polls = _polls_of(pacing, monkeypatch)
    page = _page()
    assert polls == []
    page = _run(page, "talk")
    assert pacing._POLL_S in polls
    page = _until_done(page)
    polls.clear()
    page.run()
    assert polls == []


@pytest.mark.parametrize(("plain_tps", "slower"), [(60.0, 1), (None, 1), (8.0, 2)])
def test_a_slow_target_is_polled_half_as_often_until_stop(
    polls: list[float], plain_tps: float | None, slower: int
) -> None:
    page = _run(_page(), "talk")
    run = _visit(page).run
    assert run and run.state.started
    run.state.started = replace(run.state.started, baseline_tps=plain_tps)
    polls.clear()
    page.run()
    normal = run_view.TREE_POLL_S, run_view.NUMBERS_POLL_S, run_view.CHARTS_POLL_S
    assert sorted(set(polls)) == [slower * s for s in normal]
    run.stop()
    assert run_view._slower(run) == 1


def test_the_page_is_drawn_anew_when_the_run_begins(polls: list[float]) -> None:
    page = _run(_page(), "queued")
    assert "specviz_tree" in _components(page), "its place is kept while the run waits"
    run = _visit(page).run
    polls.clear()
    run.prompt = "talk"  # no longer one that waits
    run._left = iter(SCENES["talk"]().events)
    page.run()
    assert run_view.TREE_POLL_S in polls


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        ("queued", "Waiting: 2 runs are ahead of this one."),
        ("downloading", "Downloading SmolLM2-135M-Instruct: 37.4 MB of 92.9 MB"),
        ("baseline", "Measuring plain decoding: 12 of 32 tokens"),
    ],
)
def test_each_wait_is_read_out(scene: str, said: str) -> None:
    assert _said(_run(_page(), scene)) == said


def test_the_end_is_read_out_with_its_numbers_and_a_failure_too() -> None:
    assert _said(_until_done(_run(_page(), "talk"))).startswith("The run is complete: the model ended its answer.")
    assert _said(_until_done(_run(_page(), "fails"))).startswith("The run ended with an error.")
    assert _said(_until_done(_run(_page(), "fails at once"))).startswith("The run ended with an error.")
