"""The decision inspector in Chromium: one choice for tree, text and inspector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import Tab
from tests.browser.located import text_of
from tests.ui.fakes import HOSTILE

pytestmark = pytest.mark.browser

CHOSEN = "globalThis.__specviz.chosen.id"
#: By how much anything of the inspector, or the page, is wider than its place.
WIDER = """(box) => Math.max(
  box.scrollWidth - box.clientWidth, document.documentElement.scrollWidth - innerWidth,
  ...[...box.querySelectorAll("table, dl, .scale, .token")].map((part) =>
    part.getBoundingClientRect().right - box.getBoundingClientRect().right),
)"""


def _finished(tab: Tab, prompt: str, nodes: int) -> Any:
    """Run a scene to its end; gives the inspector's box."""
    tab.run(prompt)
    tab.page.get_by_text("Finished:").wait_for()
    tab.wait_for_nodes(nodes)
    return tab.page.locator(".inspector")


def _first(tab: Tab, status: str) -> dict[str, Any]:
    found: dict[str, Any] = tab.tree(
        f"tree.nodes.get().filter((n) => n.status === '{status}').map(({{ id, status }}) => ({{ id, status }}))[0]"
    )
    return found


def _choose(tab: Tab, node_id: int) -> None:
    """What a click on a node of the tree does."""
    tab.tree(f"(globalThis.__specviz.choose(tree.component, tree.run, {node_id}), 0)")


def _shows(box: Any, *texts: str) -> None:
    for text in texts:
        box.locator(".card:not(.waiting)", has_text=text).wait_for()


def test_a_click_in_the_text_is_looked_into_and_every_part_knows(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    tab = open_tab(scripted_url)
    box = _finished(tab, "talk", 20)
    box.get_by_text("Click a token in the tree or in the text.").wait_for()
    assert box.locator(".card").is_hidden()
    tab.page.locator(".token.accepted", has_text="proposes").first.click()
    _shows(box, "·proposes", "accepted", "below that, so it was kept.", "Kept if u is below 0.70; u = 0.35 was drawn.")
    chosen = tab.page.evaluate(CHOSEN)
    assert tab.tree(f"tree.nodes.get({chosen}).status") == "accepted"
    assert box.locator(".shares tbody tr").count() == 6
    assert text_of(box.locator(".shares tbody tr.self .name")) == "·proposes"
    zone, mark = (box.locator(part).evaluate("(e) => e.style.width || e.style.left") for part in (".zone", ".mark"))
    assert (zone, mark) == ("70%", "35%")


def test_from_a_refused_token_to_what_was_drawn_along_the_output_and_away(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    tab = open_tab(scripted_url)
    tab.page.evaluate(
        "() => { globalThis.__told = []; document.addEventListener('specviz-detail', (e) => __told.push(e.detail)); }"
    )
    box = _finished(tab, "talk", 20)
    refused = _first(tab, "rejected")
    _choose(tab, refused["id"])
    _shows(box, "so it was rejected.", "residual")
    told = tab.page.evaluate("() => __told.at(-1)")
    assert told["id"] == refused["id"] and len(told["alternatives"]) == 5
    assert sum(c["residual"] for c in told["alternatives"]) == pytest.approx(1, abs=1e-5)
    assert told["alternatives"][0].keys() == {"token", "p", "q", "residual"}

    card = box.locator(".card").element_handle()
    box.get_by_role("button", name="The token drawn in its place").click()
    _shows(box, "resampled", "in place of")
    drawn = tab.page.evaluate(CHOSEN)
    assert tab.tree(f"tree.nodes.get({drawn}).status") == "resampled" != refused["status"]
    step = box.get_by_role("button", name="Next token")
    step.focus()
    tab.page.keyboard.press("Enter")
    _shows(box, "round 3, position 1")
    assert step.evaluate("(b) => b === b.getRootNode().activeElement"), "the pressed button keeps the focus"
    box.get_by_role("button", name="Previous token").click()
    _shows(box, "resampled")
    assert tab.page.evaluate(CHOSEN) == drawn
    box.get_by_role("button", name="The token drawn in its place").wait_for(state="detached")
    box.get_by_role("button", name="The rejected draft token").click()
    _shows(box, "so it was rejected.")
    assert card.evaluate("(c) => c.isConnected"), "one card, filled anew"
    box.get_by_role("button", name="Close the inspector").click()
    box.get_by_text("Click a token in the tree or in the text.").wait_for()
    assert tab.page.evaluate(CHOSEN) is None
    _choose(tab, refused["id"])
    _shows(box, "so it was rejected.")


def test_what_is_looked_at_stays_while_the_run_goes_on_and_after_a_reload(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    some = tab.wait_for_nodes(12)
    _choose(tab, 2)
    box = tab.page.locator(".inspector")
    _shows(box, "round 1, position 3")
    sentence = box.locator(".sentence").element_handle()
    box.evaluate(
        "(box) => { globalThis.__changes = 0; new MutationObserver((m) => (__changes += m.length))"
        ".observe(box, { subtree: true, childList: true, characterData: true, attributes: true }); }"
    )
    tab.wait_for_nodes(some + 20)
    assert sentence.evaluate("(e) => e.isConnected")
    assert tab.page.evaluate("() => __changes") == 0, "polls without news change nothing"
    tab.page.reload()
    tab.wait_for_nodes(some)
    _shows(tab.page.locator(".inspector"), "round 1, position 3")
    tab.button("Stop").click()
    tab.page.get_by_text("Stopped by you after").wait_for()


@pytest.mark.parametrize("width", [390, 1440])
def test_hostile_tokens_in_the_inspector_do_nothing(
    open_tab: Callable[..., Tab], scripted_url: str, width: int
) -> None:
    """Markup, direction marks, a NUL and ten thousand letters: cut, visible, and text."""
    tab = open_tab(scripted_url, width=width, height=900)
    if width < 700:
        tab.page.get_by_test_id("stSidebar").wait_for(state="attached")
    box = _finished(tab, "hostile", 3 * len(HOSTILE))
    ids = tab.tree("tree.nodes.get().filter((n) => n.status === 'accepted').map((n) => n.id)")
    seen = ""
    for node_id in ids[::2]:
        _choose(tab, node_id)
        tab.page.wait_for_function("(id) => globalThis.__specviz.detail?.id === id", arg=node_id)
        seen += text_of(box) + "\n"
        assert box.evaluate(WIDER) <= 0
    assert "<script>alert(1)</script>" in seen and "onerror=alert(2)" in seen and "<b>third</b>" in seen
    assert "⟨U+202E⟩" in seen and "␀" in seen and "\u202e" not in seen and "\x00" not in seen
    assert "x" * 300 not in seen
    assert box.locator(":is(script, img, a, iframe, b:not(.token))").count() == 0


def test_status_can_be_heard_and_read_without_colour(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    box = _finished(tab, "talk", 20)
    _choose(tab, _first(tab, "rejected")["id"])
    _shows(box, "so it was rejected.")
    assert box.get_attribute("role") == "region" and box.get_attribute("aria-label") == "Decision inspector"
    live = box.locator("[aria-live=polite]")
    said = " ".join(text_of(live).split())
    assert said.startswith("▼ ·so rejected round 2, position 3") and said.endswith("so it was rejected.")
    assert box.get_by_role("img", name="Kept if u is below 0.70; u = 0.85 was drawn.").count() == 1
    assert box.get_by_role("table", name="Probabilities after the sampling settings (temperature 0.8)").count() == 1
    assert box.get_by_role("rowheader").count() == 6
    assert box.get_by_role("columnheader").all_text_contents() == ["token", "draft q", "target p", "residual"]
