"""After thousands of nodes the browser shows what the server knows, also when messages were lost on the way."""

from __future__ import annotations

import pytest

from tests.browser.measured.recipe import Recipe
from tests.browser.measuring import WHOLE, Measured, figure

pytestmark = pytest.mark.browser

TOKENS, CHARTS = (2_000, 100) if WHOLE else (700, 30)


def test_equal_at_10_hz_and_after_lost_messages(measured_tab: Measured) -> None:
    m = measured_tab
    m.start(Recipe("fed", rate=200, tokens=100_000, tree_s=0.1, charts_s=0.1))
    m.until(lambda: m.js("m.hooked?.nodes.length ?? 0") > 300)
    m.until(lambda: m.js("m.charts().length") > 0)
    m.js("m.remember()")
    m.js("m.lose(5)")
    waited = m.js("m.when(m.lostAll).then((lost) => m.when(m.recovered).then((now) => now - lost))")
    figure("5 messages of tree and text lost at 10 Hz: all there after", f"{waited:.0f} ms", "≤ 2,000 ms")
    m.until(lambda: len(m.frames.polls.get("charts", ())) >= CHARTS, timeout_s=240)
    _stop_after(m, TOKENS)
    m.until_equal()
    assert m.js("m.same()"), "the same network, canvas, text and charts"
    figure(
        f"network, text and charts after {CHARTS} polls of the charts and the end of the run",
        "the same elements",
        "same",
    )
    tokens = len(m.whole()["spans"])
    figure(f"nodes, spans and text after {tokens:,} tokens at 10 Hz and a gap", "equal to the server's", "equal")


def test_equal_at_5_hz_and_after_three_seconds_of_a_blocked_page(measured_tab: Measured) -> None:
    m = measured_tab
    m.start(Recipe("fed", rate=200, tokens=100_000, seed=2, tree_s=0.2))
    m.until(lambda: m.js("m.hooked?.nodes.length ?? 0") > 300)
    since = m.js("m.block(3000)")
    there = m.polls()[-1]["nodes"]
    at = m.js(f"m.when(() => m.hooked.nodes.length >= {there})")
    figure("page blocked for 3 s: all there after", f"{at - since:.0f} ms", "≤ 2,000 ms")
    _stop_after(m, TOKENS)
    m.until_equal()
    tokens = len(m.whole()["spans"])
    figure(f"nodes, spans and text after {tokens:,} tokens at 5 Hz and 3 s blocked", "equal to the server's", "equal")


def _stop_after(m: Measured, tokens: int) -> None:
    m.until(lambda: m.polls()[-1]["tokens"] >= tokens)
    m.tab.button("Stop").click()
    m.page.get_by_text("Stopped by you after").wait_for()


def test_hostile_tokens_equal_too(measured_tab: Measured) -> None:
    m = measured_tab
    m.start(Recipe("fed", rate=60, tokens=60, hostile=True, seed=3))
    m.page.get_by_text("Finished:").wait_for()
    m.until_equal()
    assert "😀" in m.js("m.whole().text"), "one character from two tokens"
    wide = m.js("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, "nothing makes the page wider"
    for box in (".text", ".network", ".legend", ".inspector"):
        assert m.page.locator(f"{box} :is(script, img, a, b.evil, iframe)").count() == 0
    figure("hostile tokens", "shown as text, no dialog, nothing wider than the page")
