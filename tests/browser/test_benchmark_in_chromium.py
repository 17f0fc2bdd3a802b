"""A small sweep on the page in a real browser: cancel, go on, take away, compare."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import Tab

pytestmark = pytest.mark.browser

BOXES = ["bench_map", "bench_bars", "bench_positions", "bench_domains"]


@pytest.fixture
def bench(serve_page: Callable[..., str], open_tab: Callable[..., Tab], tmp_path: Any) -> Any:
    url = serve_page(SPECVIZ_TARGET="toy", DRAFT_MODEL="toy", MAX_TOKENS="48", SPECVIZ_CACHE=str(tmp_path / "cache"))
    tab = open_tab(url)
    tab.page.get_by_role("link", name="Benchmark").click()
    tab.button("Measure").wait_for()
    return tab


def _set(tab: Tab, label: str, value: str) -> None:
    box = tab.page.get_by_label(label, exact=True)
    box.fill(value)
    box.press("Enter")


def _slow_down(tab: Tab, ms: str) -> None:
    """With a network in front, there is time to press a button; with half of the prompts, not too much of it."""
    tab.page.get_by_role("slider", name="Prompts per domain").press("ArrowLeft")
    tab.page.get_by_text("Repeats, seed, network").click()
    _set(tab, "Simulated round trip, ms", ms)
    tab.page.get_by_text("80 runs").wait_for()  # with the second baseline


def _saved(tab: Tab, label: str) -> Any:
    with tab.page.expect_download() as download:
        tab.button(label).click()
    return download.value


def _under_way(tab: Tab) -> None:
    """Until some runs are done."""
    tab.page.get_by_text(re.compile(r"· [1-9]\d* of 80 runs")).first.wait_for()


def _measure_a_few(tab: Tab) -> None:
    """And pause: whatever is looked at next, the sweep is not over by then."""
    tab.button("Measure").click()
    _under_way(tab)
    tab.button("Pause").click()
    tab.page.get_by_text("Paused: Resume goes on").wait_for()


def _drawn(tab: Tab) -> None:
    tab.page.wait_for_function(
        """(names) => names.every((n) => document.querySelector(`.chart[data-chart=${n}] .main-svg`))
          && !globalThis.__specviz.toDraw.size""",
        arg=BOXES,
    )


def test_measure_cancel_go_on_download_and_compare(bench: Any) -> None:
    tab = bench
    _slow_down(tab, "5")
    _measure_a_few(tab)
    _drawn(tab)
    before = tab.page.locator(".chart").element_handles()
    tab.button("Cancel").click()
    tab.page.get_by_text("runs are still to be measured").first.wait_for()
    partly = json.loads(_saved(tab, "JSON").path().read_text())
    assert partly["schema"] == "specviz.bench/1" and 0 < len(partly["trials"]) < 80
    assert tab.page.locator(".chart").element_handles()[0].evaluate("(e, other) => e === other", before[0]), (
        "charts are redrawn in place, also when the sweep ends"
    )

    tab.page.get_by_text("Saved benchmarks: open, go on, compare").click()
    _choose_newest(tab)
    tab.button("Go on").click()
    tab.page.get_by_text("Measured: 80 runs").wait_for(timeout=120_000)
    whole = json.loads(_saved(tab, "JSON").path().read_text())
    assert whole["trials"][: len(partly["trials"])] == partly["trials"] and len(whole["trials"]) == 80
    rows = _saved(tab, "CSV").path().read_text().splitlines()
    assert rows[0].startswith("draft,k,temperature") and len(rows) == 1 + 10
    assert _saved(tab, "Parquet").path().read_bytes()[:4] == b"PAR1"
    _drawn(tab)
    bars = tab.page.evaluate("() => document.querySelector('[data-chart=bench_bars]').lastChild.data[0].x.length")
    assert bars == 8

    _set(tab, "Seed", "7")
    _measure_a_few(tab)
    tab.button("Cancel").click()
    tab.page.get_by_text("runs are still to be measured").first.wait_for()
    _choose_newest(tab, nth=1)
    tab.page.get_by_text("Not the same: seed: 0, then 7").wait_for()


def _choose_newest(tab: Tab, nth: int = 0) -> None:
    from playwright.sync_api import TimeoutError as Closed

    option = tab.page.get_by_role("option").nth(nth)
    for _ in range(5):
        tab.page.get_by_role("combobox", name="Saved").click()
        try:
            option.wait_for(timeout=5_000)
            break
        except Closed:  # a run of the page has drawn the box anew
            continue
    option.click()


def test_a_run_goes_on_while_another_page_is_looked_at(bench: Any) -> None:
    tab = bench
    _slow_down(tab, "5")
    tab.button("Measure").click()
    _under_way(tab)
    tab.page.get_by_role("link", name="Live").click()
    tab.button("Run").wait_for()
    tab.page.get_by_role("link", name="Benchmark").click()
    tab.page.get_by_text("Measured: 80 runs").wait_for(timeout=120_000)
    _drawn(tab)
