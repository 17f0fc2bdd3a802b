"""The outline of every page, as a screen reader finds it: headings, landmarks, the menu (quarto-cli#14698)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import Tab
from tests.browser.located import label_of

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = pytest.mark.browser

#: In Playwright's drawing of the accessibility tree, which goes through shadow roots in the order of reading.
_HEADING = re.compile(r"- '?heading \"(.*)\" \[level=(\d)\]")
RUN = ["Prompt", "Run", "Token tree", "Text", "Decision inspector", "Charts"]
RESULTS = ["Measure", "Results", "Table", "Charts", "Saved benchmarks"]


def _outline(part: Locator) -> list[tuple[int, str]]:
    return [(int(level), text) for text, level in _HEADING.findall(part.aria_snapshot())]


def _parts(tab: Tab) -> list[str]:
    """The parts of a page, whose headings must be a true outline: one h1, first, and no level left out.

    The sidebar comes before the content in the order of reading; it has headings for parts, and none for the page.
    """
    headings = _outline(tab.page.get_by_role("main"))
    levels = [level for level, _ in headings]
    assert levels[0] == 1 and levels.count(1) == 1, headings
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False)), headings
    assert all(text.strip() for _, text in headings)
    beside = _outline(tab.page.get_by_role("region", name="Sidebar"))
    assert beside and {level for level, _ in beside} == {2}
    assert len(_outline(tab.page.locator("body"))) == len(headings) + len(beside), "all are in a landmark"
    return [text for level, text in headings if level == 2]


def test_the_live_page_before_during_and_after_a_run(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.page.get_by_role("heading", name="Press Run").wait_for()
    assert _parts(tab)[0] == "Prompt"
    tab.run("endless")
    tab.wait_for_nodes(5)
    tab.page.get_by_role("heading", name="Acceptance rate").wait_for()
    assert _parts(tab) == RUN
    tab.button("Stop").click()
    tab.page.get_by_text("Stopped by you after").wait_for()
    assert _parts(tab) == RUN
    regions = tab.page.get_by_role("main").get_by_role("region")
    names = [label_of(region) for region in regions.all()]
    assert {"Token tree", "Text", "Decision inspector", "Charts beside the tree", "Charts below the tree"} == set(names)
    for name in names:
        assert not name.startswith("Charts") or tab.page.get_by_role("region", name=name).get_by_role("img").count()


def test_the_live_page_after_a_run_that_failed(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("fails at once")
    tab.page.get_by_text("A draft has 300 tokens").wait_for()
    assert _parts(tab) == ["Prompt", "Run"]
    tab.run("fails")
    tab.page.get_by_text("The target went away").wait_for()
    tab.page.get_by_role("heading", name="Acceptance rate").wait_for()
    assert _parts(tab) == RUN


def test_benchmark_and_planner(serve_page: Callable[..., str], open_tab: Callable[..., Tab], tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    tab = open_tab(serve_page(SPECVIZ_TARGET="toy", DRAFT_MODEL="toy", SPECVIZ_CACHE=cache))
    menu = tab.page.get_by_role("navigation", name="Pages")
    menu.get_by_role("link", name="Benchmark").click()
    tab.button("Measure").wait_for()
    assert _parts(tab) == ["Measure", "About this page", "Saved benchmarks"]
    tab.button("Measure").click()
    tab.page.get_by_role("heading", name="Speed-up, draft × K").wait_for()
    assert [part for part in _parts(tab) if part != "Downloads"] == RESULTS
    said = tab.page.locator(".announced").filter(has_text="The benchmark has ended: 144 runs are measured.")
    said.wait_for()
    tab.page.get_by_role("heading", name="Downloads").wait_for()
    assert _parts(tab) == [*RESULTS[:-1], "Downloads", RESULTS[-1]]

    menu.get_by_role("link", name="Planner").click()
    tab.page.get_by_role("heading", name="Speed-up over K").wait_for()
    costs = ["Round trip, draft and baseline", "Charts", "What the target bills", "All numbers"]
    assert _parts(tab) == ["Answer", *costs]
    tab.page.get_by_text("Saved benchmark or prediction").click()
    tab.page.get_by_text("There are no measurements yet").wait_for()
    assert _parts(tab) == ["Answer"]
