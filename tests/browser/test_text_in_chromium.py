"""The text in a real browser: chosen by mouse and keyboard, followed to its end, copied, read where it is narrow."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import Tab
from tests.browser.located import box_of, text_of
from tests.ui.fakes import SCENES

pytestmark = pytest.mark.browser

_STATE = "(frame) => { const text = frame.getRootNode().__specviz ?? frame.parentNode.__specviz; return %s; }"


def _text(tab: Tab, expression: str) -> Any:
    """Evaluate over `text`, the drawn text's state."""
    return tab.page.locator(".frame").evaluate(_STATE % expression)


def _box(tab: Tab) -> Any:
    return tab.page.get_by_role("group", name="Output, one element per token")


def _finished(tab: Tab, prompt: str) -> None:
    tab.run(prompt)
    tab.page.get_by_text("Finished:").wait_for()
    _wait_for_tokens(tab, len(SCENES[prompt]().state().text) - 1)


def _wait_for_tokens(tab: Tab, more_than: int) -> int:
    tab.page.locator(".text .token").nth(more_than).wait_for(state="attached")
    return tab.page.locator(".text .token").count()


def _chosen(tab: Tab) -> Any:
    return tab.page.locator(".text .token[aria-current=true]")


def test_a_click_chooses_a_token_for_tree_and_inspector_too(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    _finished(tab, "talk")
    tab.wait_for_nodes(len(SCENES["talk"]().state().nodes) - 1)
    token = tab.page.locator(".text .token.resampled").nth(2)
    token.click()
    assert token.get_attribute("aria-current") == "true" and _chosen(tab).count() == 1
    chosen = tab.page.evaluate("globalThis.__specviz.chosen.id")
    assert text_of(tab.page.locator(".text .token").nth(_text(tab, "text.chosen.__token.at"))) == text_of(token)
    tab.page.locator(".inspector").get_by_text("resampled", exact=False).first.wait_for()
    assert tab.tree("tree.network.getSelectedNodes()") == [chosen]


def test_the_keyboard_goes_through_the_text_and_chooses(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    _finished(tab, "talk")
    tokens, keys = tab.page.locator(".text .token"), tab.page.keyboard
    assert tab.page.locator(".text .token[tabindex='0']").count() == 1, "the text is one tab stop"
    tokens.first.focus()
    keys.press("ArrowRight")
    keys.press("ArrowRight")
    keys.press("Enter")
    assert tokens.nth(2).get_attribute("aria-current") == "true"
    keys.press("End")
    keys.press(" ")
    assert tokens.last.get_attribute("aria-current") == "true" and _chosen(tab).count() == 1
    tip = tab.page.get_by_role("tooltip")
    assert tip.is_visible() and "round 40" in text_of(tip)
    keys.press("Escape")
    assert not tip.is_visible() and _chosen(tab).count() == 1
    keys.press("Escape")
    assert _chosen(tab).count() == 0


def test_a_choice_made_elsewhere_comes_into_view_in_the_box_and_not_on_the_page(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    tab = open_tab(scripted_url, height=700)
    _finished(tab, "large")
    _box(tab).scroll_into_view_if_needed()
    page = "document.querySelector('[data-testid=stMain]').scrollTop"
    before = tab.page.evaluate(page)
    _text(tab, "(globalThis.__specviz.choose(text.component, text.run, text.spans[20].__token.id), 0)")
    assert _chosen(tab).count() == 1
    inside = (
        "(() => { const [a, b] = [text.chosen.getBoundingClientRect(), text.box.getBoundingClientRect()];"
        " return a.top >= b.top && a.bottom <= b.bottom; })()"
    )
    assert _text(tab, inside) and tab.page.evaluate(page) == before
    assert tab.page.locator(".text .token[tabindex='0']").count() == 1
    assert tab.page.locator(".text .token[tabindex='0'][aria-current=true]").count() == 1, "the next Tab goes there"


def test_a_dropped_draft_that_is_chosen_marks_what_came_in_its_place(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    tab = open_tab(scripted_url)
    _finished(tab, "talk")
    state = SCENES["talk"]().state()
    dropped = next(n for n in state.nodes if n.status == "ignored")
    came = next(n for n in state.nodes if n.round == dropped.round and n.status == "resampled")
    _text(tab, f"(globalThis.__specviz.choose(text.component, text.run, {dropped.id}), 0)")
    place = tab.page.locator(".text .token.place")
    place.wait_for()
    assert place.count() == 1 and _text(tab, "text.chosen.__token.id") == came.id
    assert _chosen(tab).count() == 0, "it stands for the draft; it is not what was chosen"


def test_a_token_that_is_looked_at_marks_its_round(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    _finished(tab, "talk")
    state = SCENES["talk"]().state()
    of_round = [sum(state.nodes[i].round == number for i in state.text) for number in (0, 1)]
    marked = tab.page.locator(".text .token.round")
    tab.page.locator(".text .token").first.hover()
    assert marked.count() == of_round[0]
    tab.page.locator(".text .token").nth(of_round[0]).hover()
    assert marked.count() == of_round[1]
    tab.page.locator(".text .token").first.click()
    tab.page.mouse.move(5, 5)
    assert marked.count() == of_round[0], "the round of the chosen token stays marked"


def test_the_text_follows_its_end_until_it_is_scrolled_and_a_button_leads_back(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    _wait_for_tokens(tab, 220)
    away = "text.box.scrollHeight - text.box.clientHeight - text.box.scrollTop"
    newest = tab.button("↓ Newest")
    assert _text(tab, away) <= 8 and not newest.is_visible()
    _box(tab).hover()
    tab.page.mouse.wheel(0, -300)
    newest.wait_for()
    at = _text(tab, "text.box.scrollTop")
    _wait_for_tokens(tab, tab.page.locator(".text .token").count() + 30)
    assert _text(tab, "text.box.scrollTop") == at, "the text stays where the person looks"
    newest.click()
    newest.wait_for(state="hidden")
    _wait_for_tokens(tab, tab.page.locator(".text .token").count() + 30)
    assert _text(tab, away) <= 8
    tab.button("Stop").click()


def test_what_is_copied_is_the_text_alone(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url, permissions=["clipboard-read", "clipboard-write"])
    _finished(tab, "hostile")
    shown = _text(tab, "text.spans.filter((s) => !s.classList.contains('chip')).map((s) => s.textContent).join('')")
    assert "\n\n" in shown and "😀" in shown and "שלום" in shown and "<|im_end|>" not in shown
    _text(tab, "(getSelection().selectAllChildren(text.box), 0)")
    tab.page.keyboard.press("Control+c")
    assert _clipboard(tab) == shown, "no ↵, no · and no name of a token that is no text"
    _text(tab, "(getSelection().removeAllRanges(), navigator.clipboard.writeText('before'))")
    tab.button("Copy text").click()
    tab.page.get_by_text("Copied.").wait_for()
    assert _clipboard(tab) == shown


def _clipboard(tab: Tab) -> str:
    return str(tab.page.evaluate("navigator.clipboard.readText()")).replace("\r\n", "\n")


def test_marking_a_part_of_a_token_chooses_nothing(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    _finished(tab, "talk")
    box = box_of(tab.page.locator(".text .token", has_text="proposes").first)
    tab.page.mouse.move(box["x"] + 12, box["y"] + 8)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 40, box["y"] + 8, steps=4)
    tab.page.mouse.up()
    assert _chosen(tab).count() == 0


def test_both_halves_of_an_emoji_can_be_chosen_and_it_stays_whole(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    """Reported as ferrox#124."""
    tab = open_tab(scripted_url)
    _finished(tab, "hostile")
    whole, part = tab.page.locator(".text .token.whole").first, tab.page.locator(".text .token.part").first
    for half in (whole, part):
        half.click()
        assert half.get_attribute("aria-current") == "true" and _chosen(tab).count() == 1
        assert text_of(whole) == "😀" and box_of(half)["width"] > 5
    tips = []
    for half in (whole, part):
        half.hover()
        tips.append(text_of(tab.page.get_by_role("tooltip")))
    assert tips[0] != tips[1] and "\\xf0\\x9f" in tips[0] and "\\x98\\x80" in tips[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_chosen_token_stands_out_from_every_status(
    open_tab: Callable[..., Tab], scripted_url: str, scheme: str
) -> None:
    tab = open_tab(scripted_url, color_scheme=scheme)
    _finished(tab, "talk")
    for status in ("accepted", "resampled", "bonus"):
        token = tab.page.locator(f".text .token.{status}").nth(1)
        token.click()
        tab.page.mouse.move(5, 5)
        ring = token.evaluate(
            "(t) => { const s = getComputedStyle(t); return [s.outlineStyle, s.outlineColor, s.color]; }"
        )
        assert ring[0] != "none" and ring[1] == ring[2], "as strong as the letters themselves"


def test_statuses_differ_without_colours(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url, forced_colors="active")
    _finished(tab, "talk")
    lines = [
        tab.page.locator(f".text .token.{status}").first.evaluate(
            "(t) => { const s = getComputedStyle(t); return s.textDecorationLine + ' ' + s.textDecorationStyle; }"
        )
        for status in ("accepted", "resampled", "bonus")
    ]
    assert len(set(lines)) == 3 and all(line.startswith("underline") for line in lines)


def test_colours_can_be_taken_off(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    _finished(tab, "talk")
    look = "(t) => { const s = getComputedStyle(t); return [s.backgroundColor, s.textDecorationLine]; }"
    switch = tab.page.get_by_role("button", name="Colours", pressed=True)
    switch.click()
    tab.page.get_by_role("button", name="Colours", pressed=False).wait_for()
    assert tab.page.locator(".text .token.resampled").first.evaluate(look) == ["rgba(0, 0, 0, 0)", "none"]


def test_the_text_has_a_name_and_its_own_place(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    _finished(tab, "talk")
    region = tab.page.get_by_role("region", name="Text")
    assert region.get_by_role("group", name="Output, one element per token").count() == 1
    assert region.get_by_role("button").all_text_contents() == ["Colours", "Copy text"]
    token = tab.page.locator(".text .token").first
    token.focus()
    described = token.evaluate("(t) => t.getRootNode().getElementById(t.getAttribute('aria-describedby')).textContent")
    assert re.match(r"·the +id \d+\naccepted · round 1, position 1\n", described)


@pytest.mark.parametrize("width", [390, 700, 1024])
@pytest.mark.parametrize("prompt", ["hostile", "remote"])
def test_nothing_is_wider_than_the_window(
    open_tab: Callable[..., Tab], scripted_url: str, width: int, prompt: str
) -> None:
    tab = open_tab(scripted_url, width=width, height=844)
    wide = (
        "() => [document.documentElement, document.querySelector('[data-testid=stMain]')]"
        ".map((e) => e.scrollWidth - e.clientWidth)"
    )
    assert tab.page.evaluate(wide) == [0, 0], "before a run"
    _finished(tab, prompt)
    tab.page.locator(".js-plotly-plot").first.wait_for()
    assert tab.page.evaluate(wide) == [0, 0]
    cards = [box_of(card) for card in tab.page.locator("[data-testid=stMetric]").all()]
    assert len({round(card["width"]) for card in cards}) <= 2 and all(card["width"] > 120 for card in cards)


def test_what_happens_is_read_out_once_and_not_with_every_poll(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("queued")
    status = tab.page.locator(".announced[role=status]")
    tab.page.wait_for_function(
        "() => [...document.querySelectorAll('*')].some((e) =>"
        " e.shadowRoot?.querySelector('.announced')?.textContent.startsWith('Waiting: 2 runs are ahead'))"
    )
    status.evaluate(
        "(s) => { s.__told = []; new MutationObserver(() => s.__told.push(s.textContent))"
        ".observe(s, { childList: true, characterData: true, subtree: true }); }"
    )
    tab.button("Stop").click()
    tab.page.get_by_text("Stopped by you after").wait_for()
    tab.run("talk")
    tab.page.get_by_text("Finished:").wait_for()
    tab.page.locator(".announced", has_text="The run is complete: the model ended").wait_for(state="attached")
    told = status.evaluate("(s) => s.__told")
    assert told[-1].startswith("The run is complete: the model ended its answer. It has 120 tokens in 40 rounds.")
    assert len(told) == len(set(told)) < 8, "the region stays the same from run to run, and is not filled at each poll"
    assert box_of(status)["width"] <= 1, "it is heard, not seen"


def test_a_failure_is_an_alert(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("fails")
    tab.page.get_by_role("alert").get_by_text("The target went away").wait_for()
    tab.page.locator(".announced", has_text="The run ended with an error.").wait_for(state="attached")
