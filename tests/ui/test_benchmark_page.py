"""The Benchmark page by its model: the real host and the toy pair."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from specviz.bench.sweep.results import read
from specviz.core.settings import Settings
from specviz.host.run import Run
from specviz.ui import session
from tests.ui.fakes import FakeRun

PAGE = str(Path(__file__).parents[2] / "pages" / "1_Benchmark.py")
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _toy(fresh_process: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("SPECVIZ_TARGET", "toy")
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))
    yield
    st.cache_data.clear()


@pytest.fixture
def page() -> AppTest:
    found = AppTest.from_file(PAGE, default_timeout=PATIENCE_S).run()
    assert not found.exception
    return found


def _button(page: AppTest, label: str) -> Any:
    return next(b for b in page.button if b.label == label)


def _said(page: AppTest) -> str:
    parts = [*page.info, *page.success, *page.warning, *page.error, *page.caption, *page.markdown]
    return "\n".join(str(part.value) for part in parts).replace("\\", "")


def _small(page: AppTest) -> None:
    """Two drafts at two K on three prompts."""
    page.multiselect(key="bench_domains").set_value(["chat", "json", "maths"])
    page.multiselect(key="bench_ks").set_value([1, 4])
    page.slider(key="bench_per_domain").set_value(1)
    page.slider(key="bench_max_tokens").set_value(16)
    page.run()


def test_a_run_goes_on_while_this_page_is_looked_at(page: AppTest) -> None:
    run = FakeRun(Settings(target="toy", draft="toy"), "endless")
    session.of(page.session_state["visit"]).run = cast(Run, run)
    page.run()
    rounds = len(run.state.rounds)
    page.run()
    assert len(run.state.rounds) > rounds and "The run on the Live page goes on" in _said(page)
    run.stop()
    page.run()
    assert run.done and "goes on" not in _said(page)


def _until(page: AppTest, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, _said(page)
        page.run()
        assert not page.exception


def _measured(page: AppTest) -> None:
    _button(page, "Measure").click().run()
    _until(page, lambda: any("Measured:" in s.value for s in (*page.success, *page.warning)))


def test_the_empty_page_says_what_it_is_for_and_how_many_runs_are_planned(page: AppTest) -> None:
    assert "Which draft, which K?" in _said(page)
    assert not _button(page, "Measure").disabled and _button(page, "Cancel").disabled
    _small(page)
    assert "5 cells, plain decoding among them, × 3 prompts = 15 runs" in _said(page)


def test_a_sweep_fills_the_table_says_a_verdict_and_is_saved(page: AppTest, tmp_path: Path) -> None:
    _small(page)
    _measured(page)
    table = page.dataframe[0].value
    assert list(table["Draft"])[0] == "plain decoding" and len(table) == 5 and set(table["Runs"]) == {"3"}
    assert "Measured: 15 runs" in _said(page) and "plain decoding" in _said(page)
    (path,) = (tmp_path / "cache" / "benchmarks").glob("*.json")
    assert read(path).missing == 0
    assert not _button(page, "Measure").disabled and _button(page, "Pause").disabled


def test_a_benchmark_can_be_paused_cancelled_and_continued(page: AppTest, tmp_path: Path) -> None:
    _small(page)
    page.number_input(key="bench_rtt").set_value(25)  # so that there is time to press a button
    page.run()
    _button(page, "Measure").click().run()
    _until(page, lambda: any(b.label == "Pause" and not b.disabled for b in page.button))
    _button(page, "Pause").click().run()
    assert not _button(page, "Resume").disabled
    _button(page, "Resume").click().run()
    _button(page, "Cancel").click().run()
    _until(page, lambda: "runs are still to be measured" in _said(page))
    (path,) = (tmp_path / "cache" / "benchmarks").glob("*.json")
    before = read(path)
    assert before.missing
    page.selectbox(key="bench_saved").set_value(path.name).run()
    _button(page, "Go on").click().run()
    _until(page, lambda: any("Measured:" in s.value for s in page.success))
    after = read(path)
    assert after.missing == 0 and after.trials[: len(before.trials)] == before.trials


def test_two_saved_ones_are_compared(page: AppTest, tmp_path: Path) -> None:
    _small(page)
    _measured(page)
    (first,) = (tmp_path / "cache" / "benchmarks").glob("*.json")
    page.number_input(key="bench_seed").set_value(5).run()
    _measured(page)
    page.selectbox(key="bench_saved").set_value(first.name).run()
    compared = page.dataframe[1].value
    assert len(compared) == 5 and list(compared["Tokens/round beyond chance"])[1:] == ["no"] * 4
    assert "seed: 0, then 5" in _said(page)
    _button(page, "Open").click().run()
    assert "Back to the newest" in [b.label for b in page.button]


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("bench_ks", "Drafted per round, K: nothing is chosen"),
        ("bench_temperatures", "Temperatures: nothing is chosen"),
        ("bench_drafts_toy", "No draft is chosen"),
        ("bench_domains", "choose at least one domain"),
    ],
)
def test_a_form_without_a_choice_says_what_is_missing(page: AppTest, key: str, says: str) -> None:
    page.multiselect(key=key).set_value([]).run()
    assert says in _said(page) and _button(page, "Measure").disabled


def test_an_unknown_draft_is_refused_and_the_results_stay(page: AppTest) -> None:
    _small(page)
    _measured(page)
    page.session_state["bench_drafts_toy"] = ["ngram", "model:<b>no</b>/such"]
    page.run()
    _button(page, "Measure").click().run()
    assert page.error and "<b>" not in "".join(e.value.replace("\\<", "") for e in page.error)
    assert len(page.dataframe[0].value) == 5


def test_a_file_that_is_not_a_benchmark_is_refused(page: AppTest, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "benchmarks"
    folder.mkdir(parents=True)
    (folder / "other.json").write_text(json.dumps({"schema": "something else"}))
    page.run()
    page.selectbox(key="bench_saved").set_value("other.json").run()
    assert "This is not a saved benchmark" in _said(page)


def test_several_temperatures_and_rules_are_shown_one_at_a_time(page: AppTest) -> None:
    _small(page)
    page.multiselect(key="bench_temperatures").set_value([0.0, 1.0])
    page.multiselect(key="bench_rules").set_value(["probabilistic", "threshold"]).run()
    _measured(page)
    assert len(page.dataframe[0].value) == 2 * (1 + 8)
    assert {"LOSSY", "EXACT"} <= set(page.dataframe[0].value["Promise"])
