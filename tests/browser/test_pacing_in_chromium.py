"""Pause, step, pace and the trace to take away, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specviz.record.trace import Recording, parse
from tests.browser.conftest import Tab
from tests.browser.located import text_of
from tests.ui.fakes import SCENES

pytestmark = pytest.mark.browser

PAUSED = re.compile(r"Paused at round ([\d,]+)\. The models are ahead, at round ([\d,]+)\.")


def _line(tab: Tab, said: str | re.Pattern[str]) -> Any:
    """In the line that says where the run stands; the same is read out elsewhere."""
    return tab.page.locator("[data-testid=stProgress], [data-testid=stAlert]").get_by_text(said)


def _standing(tab: Tab) -> tuple[int, int]:
    """Rounds that a paused run shows, and rounds that are computed."""
    line = _line(tab, PAUSED)
    line.wait_for()
    found = PAUSED.search(text_of(line))
    assert found, "the line has both counts"
    return int(found[1].replace(",", "")), int(found[2].replace(",", ""))


def _until_ahead(tab: Tab, more: int = 30) -> tuple[int, int]:
    """Wait while the models compute more rounds, hence over several polls."""
    now, goal = _standing(tab), _standing(tab)[1] + more
    while now[1] < goal:
        tab.page.wait_for_function(
            "(old) => ![...document.querySelectorAll('p')].some((p) => p.textContent.endsWith(old))",
            arg=f"at round {now[1]:,}.",
        )
        now = _standing(tab)
    return now


def _choose(tab: Tab, pace: str) -> None:
    tab.page.get_by_label("Pace at which the run is shown").click()
    tab.page.get_by_role("option", name=f"Pace: {pace}", exact=True).click()


def _download(tab: Tab) -> tuple[str, Path]:
    with tab.page.expect_download() as download:
        tab.button("Download trace").click()
    tab.button("Download trace").wait_for()
    return download.value.suggested_filename, download.value.path()


def _read(path: Path) -> Recording:
    with path.open("rb") as file:
        return parse(file)


def test_pause_holds_step_adds_one_round_resume_goes_on(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    tab.wait_for_nodes(20)
    tab.button("Pause").click()
    tab.button("Resume").wait_for()
    assert tab.page.evaluate("document.activeElement.innerText").endswith("Resume"), "the keyboard stays where it was"
    # Half a second for what was sent before the click.
    shown, _ = _until_ahead(tab)
    nodes, tokens = tab.nodes(), tab.page.locator(".token").count()
    assert _until_ahead(tab)[0] == shown
    assert (tab.nodes(), tab.page.locator(".token").count()) == (nodes, tokens), "nothing grows"

    for step in range(1, 3):
        tab.button("Step").focus()
        tab.page.keyboard.press("Enter")
        _line(tab, f"Paused at round {shown + step:,}.").wait_for()
        assert _until_ahead(tab)[0] == shown + step, "one round and no more"
    rounds = tab.tree("new Set(tree.nodes.get().map((node) => node.round)).size")
    assert tab.nodes() > nodes and rounds in (1, shown + 2), "one where nodes do not say of which round they are"

    before = tab.nodes()
    tab.button("Resume").click()
    tab.wait_for_nodes(before + 20)
    _line(tab, PAUSED).wait_for(state="detached")
    tab.button("Stop").click()
    _line(tab, "Stopped by you after").wait_for()
    tab.button("Step").wait_for(state="detached")


def test_stop_while_paused_shows_what_was_computed_and_ends(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    tab.wait_for_nodes(20)
    tab.button("Pause").click()
    shown, computed = _until_ahead(tab)
    nodes = tab.nodes()
    tab.button("Stop").click()
    _line(tab, "Stopped by you after").wait_for()
    tab.page.locator("button:enabled", has_text="Run").wait_for()
    tab.wait_for_nodes(nodes + 2 * (computed - shown))


def test_step_by_step_begins_before_the_first_round(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    _choose(tab, "step by step")
    tab.run("talk")
    _line(tab, "Paused before the first round.").wait_for()
    _line(tab, "The models have finished, at round 40.").wait_for()
    assert not _line(tab, "Finished:").count() and not tab.page.locator(".text .token").count()
    tab.button("Step").click()
    _line(tab, "Paused at round 1.").wait_for()
    _choose(tab, "4 rounds/s")
    _line(tab, "4 rounds/s. The models have finished, at round 40.").wait_for()
    tab.button("Pause").wait_for()
    _line(tab, "Finished:").wait_for()
    tab.run("talk")
    _line(tab, "tokens, 4 rounds/s").wait_for()
    tab.button("Stop").click()
    _line(tab, "Finished:").or_(_line(tab, "Stopped by you")).wait_for()


def test_ten_traces_taken_during_a_run_and_one_after_it(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    tab.wait_for_nodes(20)
    sizes = []
    for _ in range(10):
        name, path = _download(tab)
        assert re.fullmatch(r"specviz-[\w-]+\.jsonl", name)
        recording = _read(path)
        assert recording.events[-1].type == "metrics" and not recording.complete
        assert recording.events == tuple(SCENES["endless"]().events[: len(recording.events)])
        sizes.append(len(recording.events))
    assert sizes == sorted(set(sizes)), "each has what has come by then"
    tab.button("Stop").click()
    _line(tab, "Stopped by you after").wait_for()
    tab.run("talk")
    _line(tab, "Finished:").wait_for()
    recording = _read(_download(tab)[1])
    assert recording.complete and recording.events == tuple(SCENES["talk"]().events)


def test_a_big_trace_is_sent_once(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("large")
    _line(tab, "Finished:").wait_for()
    tab.page.wait_for_url("**/?visit=*")
    with tab.page.expect_websocket() as opened:
        tab.page.reload()
    traces: list[int] = []

    def received(data: str | bytes) -> None:
        if isinstance(data, bytes) and b"verify_latency_ms" in data:
            traces.append(len(data))

    opened.value.on("framereceived", received)
    tab.wait_for_nodes(1000)
    size = _download(tab)[1].stat().st_size
    assert size > 1_000_000
    tab.page.get_by_role("slider", name="Drafted per round, K").press("ArrowRight")
    tab.page.get_by_text("With K = 4").wait_for()
    assert abs(_download(tab)[1].stat().st_size - size) < 100, "the time in its header has more digits or fewer"
    assert len(traces) == 2 and min(traces) > size, "once for each time that it was asked for"


def test_a_trace_that_does_not_come_is_said_so_and_can_be_asked_for_again(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    tab = open_tab(scripted_url)
    tab.run("talk")
    _line(tab, "Finished:").wait_for()
    tab.button("Download trace").wait_for()
    # No patience at all, once.
    tab.page.evaluate(
        "() => { const real = window.setTimeout; window.setTimeout = (call, ms, ...rest) => {"
        " if (ms === 30_000) { window.setTimeout = real; ms = 0; } return real(call, ms, ...rest); }; }"
    )
    saved: list[Any] = []
    tab.page.on("download", lambda download: saved.append(download))
    tab.button("Download trace").click()
    tab.page.get_by_role("alert").get_by_text("No answer within 30 seconds. Try again.").wait_for()
    assert _read(_download(tab)[1]).complete
    assert len(saved) == 1, "the answer to a question that was given up is not saved"
    assert not tab.page.get_by_text("No answer within").is_visible()
