"""The Planner in a real browser: from the menu to a verdict that turns, with nothing asked of anybody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import Tab
from tests.browser.located import label_of

pytestmark = pytest.mark.browser

CHARTS = ["rtt_map", "draft_map", "speed_curve", "marginal"]


def _wait_for_charts(tab: Tab) -> None:
    tab.page.wait_for_function(
        """(names) => names.every((n) => document.querySelector(`.chart[data-chart=${n}] .main-svg`))
          && !globalThis.__specviz.toDraw.size""",
        arg=CHARTS,
    )


def _drawn(tab: Tab, chart: str) -> Any:
    return tab.page.locator(f".chart[data-chart={chart}]").evaluate("(box) => JSON.stringify(box.lastChild.data)")


def _open(tab: Tab) -> None:
    tab.page.get_by_role("link", name="Planner").click()
    tab.page.get_by_text("Break-even RTT", exact=True).wait_for()
    _wait_for_charts(tab)


def test_from_the_menu_to_a_verdict_that_a_slider_turns(open_tab: Callable[..., Tab], toy_url: str) -> None:
    tab = open_tab(toy_url)
    _open(tab)
    tab.page.get_by_text("Speculate with K = 2: 1.48 × plain decoding.").wait_for()
    before = {name: _drawn(tab, name) for name in CHARTS}
    node = tab.page.locator(".chart[data-chart=rtt_map] .main-svg").first.element_handle()

    tab.page.get_by_role("slider", name="Round trip, ms").focus()
    tab.page.keyboard.press("End")
    tab.page.get_by_text("Do not speculate here: at best").wait_for()
    tab.page.wait_for_function(
        "(old) => JSON.stringify(document.querySelector('.chart[data-chart=speed_curve]').lastChild.data) !== old",
        arg=before["speed_curve"],
    )
    _wait_for_charts(tab)
    assert all(_drawn(tab, name) != before[name] for name in CHARTS)
    assert node.evaluate("(svg) => svg.isConnected"), "charts are redrawn in place"
    for name in CHARTS:
        assert "K" in label_of(tab.page.locator(f"[data-chart={name}] [role=img]"))

    tab.page.get_by_text("one call per token", exact=True).click()
    tab.page.get_by_text("× one call per token.").wait_for()


def test_a_run_is_planned_from_and_the_page_stays_as_it_was_left(open_tab: Callable[..., Tab], toy_url: str) -> None:
    tab = open_tab(toy_url)
    tab.run("Hello")
    tab.page.get_by_text("Finished:").first.wait_for()
    _open(tab)
    tab.page.get_by_text("Last run on the Live page").wait_for()
    tab.page.get_by_text("toy → toy, K = 4:").wait_for()
    tab.page.get_by_role("slider", name="Round trip, ms").focus()
    tab.page.keyboard.press("End")
    tab.page.get_by_text("Do not speculate here: at best").wait_for()
    tab.page.get_by_role("link", name="Live").click()
    tab.page.get_by_text("Finished:").first.wait_for()
    tab.wait_for_nodes(10)
    _open(tab)
    tab.page.get_by_text("Do not speculate here: at best").wait_for()


def test_a_narrow_page_keeps_everything_in_sight(open_tab: Callable[..., Tab], toy_url: str) -> None:
    tab = open_tab(toy_url, width=420, height=900)
    # The menu is folded away there.
    tab.page.get_by_test_id("stExpandSidebarButton").click()
    tab.page.get_by_role("link", name="Planner").click()
    tab.page.get_by_text("Break-even RTT", exact=True).wait_for()
    _wait_for_charts(tab)
    wider = "() => document.querySelector('[data-testid=stMain]').scrollWidth - innerWidth"
    assert tab.page.evaluate(wider) <= 0
    tops = [
        tab.page.locator(f".chart[data-chart={n}]").evaluate("(b) => b.getBoundingClientRect().top") for n in CHARTS
    ]
    assert tops == sorted(tops) and len(set(tops)) == 4, "one below the other"
