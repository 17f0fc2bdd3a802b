"""The Live page in a real browser: what no model of the page can tell."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.browser.conftest import Tab
from tests.browser.located import box_of, text_of
from tests.ui.fakes import HOSTILE

pytestmark = pytest.mark.browser


def _wait_until_the_legend_counts_the_nodes(tab: Tab) -> None:
    """A message that was lost has told its counts to nobody, or its nodes: they come with the next."""
    tab.page.wait_for_function(
        """(box) => {
          const counts = [...box.getRootNode().querySelectorAll(".legend .count")].map((e) => Number(e.textContent));
          return counts.reduce((sum, n) => sum + n, 0) === box.__specviz.nodes.length;
        }""",
        arg=tab.page.locator(".network").element_handle(),
    )


def test_a_run_from_load_to_finish_and_a_second_one(open_tab: Callable[..., Tab], toy_url: str) -> None:
    tab = open_tab(toy_url)
    tab.run("Hello")
    tab.page.get_by_text("Finished:").wait_for()
    tab.wait_for_nodes(10)
    tab.page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot').length === 6")
    _wait_until_the_legend_counts_the_nodes(tab)
    first = text_of(tab.page.locator("div.text"))
    tokens = tab.page.locator(".token").count()
    assert first and tokens > 10

    tab.run("Something else entirely")
    tab.page.wait_for_function(
        "([old]) => [...document.querySelectorAll('*')].some((e) => e.shadowRoot?.querySelector('.text')"
        " && e.shadowRoot.querySelector('.text').textContent !== old && e.shadowRoot.querySelector('.token'))",
        arg=[first],
    )
    tab.page.get_by_text("Finished:").wait_for()
    assert tab.page.locator(".network").count() == 1, "one network, not one per run"


def test_a_second_run_after_the_first_one_has_fetched_the_model(
    first_start_url: str, open_tab: Callable[..., Tab]
) -> None:
    """What is said about a model changes when it has arrived; what is chosen must not."""
    tab = open_tab(first_start_url)
    tab.page.get_by_text("93 MB to download").wait_for()
    tab.run("endless")
    tab.wait_for_nodes(5)
    tab.button("Stop").click()
    tab.page.get_by_text("Stopped by you after").wait_for()
    tab.page.get_by_text("On this machine.").wait_for()
    tab.button("Run").click()
    tab.page.locator("button:enabled", has_text="Stop").wait_for()
    assert not tab.page.get_by_text("Unknown target").count()
    tab.button("Stop").click()


def test_nodes_and_text_grow_and_stop_ends_it(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    some = tab.wait_for_nodes(5)
    tokens = tab.page.locator(".token").count()
    tab.wait_for_nodes(some + 20)
    assert tab.page.locator(".token").count() > tokens
    tab.button("Stop").click()
    tab.page.get_by_text("Stopped by you after").wait_for()
    tab.page.locator("button:enabled", has_text="Run").wait_for()
    _wait_until_the_legend_counts_the_nodes(tab)


def test_polling_ends_with_the_run(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    from playwright.sync_api import TimeoutError as Silence

    tab = open_tab(scripted_url)
    with tab.page.expect_websocket() as opened:
        tab.page.reload()
    tab.button("Run").wait_for()
    tab.run("talk")
    tab.page.get_by_text("Finished:").wait_for()
    for _ in range(200):  # the last page run still sends a few; polls would go on for ever
        try:
            opened.value.wait_for_event("framereceived", timeout=2_500)
        except Silence:
            return
    pytest.fail("the page polls a run that has ended")


def test_hostile_tokens_are_shown_and_do_nothing(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("hostile")
    tab.page.get_by_text("Finished:").wait_for()
    tab.wait_for_nodes(3 * len(HOSTILE))
    text = text_of(tab.page.locator("div.text"))
    assert "<script>alert(1)</script>" in text and "onerror=alert(2)" in text
    assert "⟨U+202E⟩" in text and "␀" in text and "\ufffd" not in text
    for box in ("div.text", ".network", ".legend"):
        assert tab.page.locator(f"{box} :is(script, img, a, b.evil, iframe)").count() == 0
    width = tab.page.locator("div.text").evaluate("(b) => b.scrollWidth - b.clientWidth")
    assert width <= 0, "ten thousand letters without a space must wrap"


def test_a_tooltip_of_the_tree_is_text_even_with_href_in_it(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("hostile")
    tab.page.get_by_text("Finished:").wait_for()
    tab.wait_for_nodes(3 * len(HOSTILE))
    at = tab.tree(
        "(() => { const node = tree.nodes.get().find((n) => n.title.textContent.includes('href'));"
        " tree.follow = false; tree.network.moveTo({ position: { x: node.x, y: node.y }, scale: 1 });"
        " return tree.network.canvasToDOM({ x: node.x, y: node.y }); })()"
    )
    box = box_of(tab.page.locator(".network canvas"))
    tab.page.mouse.move(box["x"] + at["x"] + 30, box["y"] + at["y"] + 30)
    tab.page.mouse.move(box["x"] + at["x"], box["y"] + at["y"], steps=4)
    tip = tab.page.locator(".vis-tooltip", has_text="href")
    tip.wait_for()
    assert "acceptance probability" in text_of(tip)
    assert tip.locator("a").count() == 0


def test_pan_and_zoom_are_the_users_until_a_double_click(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    tab.wait_for_nodes(20)
    box = box_of(tab.page.locator(".network canvas"))
    x, y = box["x"] + 300, box["y"] + box["height"] - 30
    tab.page.mouse.move(x, y)
    tab.page.mouse.wheel(0, 240)
    tab.page.mouse.down()
    tab.page.mouse.move(x + 90, y - 40, steps=5)
    tab.page.mouse.up()
    view = "[tree.network.getScale(), tree.network.getViewPosition(), tree.follow]"
    before = tab.tree(view)
    assert before[2] is False
    tab.wait_for_nodes(tab.nodes() + 30)
    assert tab.tree(view) == before
    tab.page.mouse.dblclick(x, y)
    tab.wait_for_nodes(tab.nodes() + 10)
    after = tab.tree(view)
    assert after[2] is True and after[1]["x"] != before[1]["x"]


def test_lost_messages_are_asked_for_and_sent_again(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    some = tab.wait_for_nodes(40)
    tab.tree("(tree.have = 0, tree.nodes.clear(), tree.edges.clear(), 0)")
    tab.wait_for_nodes(some)
    ids = tab.tree("tree.nodes.getIds()")
    assert sorted(ids) == list(range(len(ids))), "nothing is missing in between"


def test_both_halves_of_an_emoji_can_be_selected_by_keyboard(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("hostile")
    tab.page.get_by_text("Finished:").wait_for()
    whole = tab.page.locator(".token.whole").first
    whole.wait_for()
    assert text_of(whole) == "😀"
    whole.scroll_into_view_if_needed()
    # The tooltip goes when the text is scrolled: let that be told before the click.
    tab.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    whole.click()
    tip = tab.page.locator(".tip[role=tooltip]")
    first = text_of(tip)
    assert tip.is_visible() and "draft log-probability" in first
    tab.page.keyboard.press("ArrowRight")
    assert tab.page.locator(".token.part:focus").count() == 1
    assert tip.is_visible() and text_of(tip) != first
    tab.page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_the_trace_can_be_taken_while_the_run_goes_on(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    some = tab.wait_for_nodes(20)
    with tab.page.expect_download() as download:
        tab.button("Download trace").click()
    lines = download.value.path().read_text().splitlines()
    assert [json.loads(line)["type"] for line in lines][:3] == ["header", "run_started", "draft_token"]
    tab.wait_for_nodes(some + 20)


def test_settings_changed_during_a_run_do_not_disturb_it(open_tab: Callable[..., Tab], scripted_url: str) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    some = tab.wait_for_nodes(20)
    tab.page.get_by_role("slider", name="Drafted per round, K").press("ArrowRight")
    tab.wait_for_nodes(some + 40)
    assert tab.page.locator(".network").count() == 1
    ids = tab.tree("tree.nodes.getIds()")
    assert sorted(ids) == list(range(len(ids)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_labels_can_be_read_in_both_themes(open_tab: Callable[..., Tab], scripted_url: str, scheme: str) -> None:
    tab = open_tab(scripted_url, color_scheme=scheme)
    tab.run("talk")
    tab.page.get_by_text("Finished:").wait_for()
    tab.wait_for_nodes(10)
    text = tab.page.locator("div.text").evaluate("(b) => getComputedStyle(b).color")
    light = [int(v) for v in text[text.index("(") + 1 : -1].split(",")[:3]]
    assert (sum(light) > 384) == (scheme == "dark")
    assert tab.tree("tree.text") == tab.page.locator("div.text").evaluate(
        "(b) => getComputedStyle(b.getRootNode().host).getPropertyValue('--st-text-color').trim()"
    )


@pytest.mark.parametrize(("width", "beside"), [(1240, True), (1280, True), (1366, True), (800, False)])
def test_charts_stand_beside_the_tree_where_there_is_room(
    open_tab: Callable[..., Tab], scripted_url: str, width: int, beside: bool
) -> None:
    tab = open_tab(scripted_url, width=width, height=768)
    tab.page.get_by_text("Drafted per round, K").wait_for()
    tab.run("talk")
    tab.page.get_by_text("Finished:").wait_for()
    tab.wait_for_nodes(10)
    tab.page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot').length === 6")
    tree, text = (box_of(tab.page.locator(part)) for part in (".network", "div.text"))
    gauge = box_of(tab.page.locator(".js-plotly-plot").first)
    if beside:
        assert gauge["x"] >= tree["x"] + tree["width"] and abs(gauge["y"] - tree["y"]) < 40
        assert gauge["x"] + gauge["width"] <= width
    else:
        assert gauge["y"] >= text["y"] + text["height"]


def test_the_second_of_two_tabs_waits_says_so_and_can_stop_at_once(slow_url: str, open_tab: Callable[..., Tab]) -> None:
    first = open_tab(slow_url)
    first.run("Hello")
    first.page.get_by_text("Measuring plain decoding").first.wait_for()
    second = open_tab(slow_url)
    second.run("Hello")
    second.page.get_by_text("Waiting for 1 other run.").wait_for()
    second.button("Stop").click()
    second.page.get_by_text("Stopped by you after 0 tokens").wait_for(timeout=5_000)
    second.page.locator("button:enabled", has_text="Run").wait_for()
    first.page.locator("button:enabled", has_text="Stop").wait_for()
    assert not first.page.get_by_text("Finished:").or_(first.page.get_by_text("Stopped by you")).count()
    first.button("Stop").click()
    first.page.get_by_text("Stopped by you after").wait_for()


def test_a_reload_goes_on_with_the_run_and_its_prompt_and_settings(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    tab = open_tab(scripted_url)
    tab.page.get_by_role("slider", name="Drafted per round, K").press("ArrowRight")
    tab.run("endless")
    tab.page.get_by_text("With K = 5").wait_for()
    some = tab.wait_for_nodes(30)
    tab.page.reload()
    tab.wait_for_nodes(some)
    assert tab.page.get_by_label("Prompt", exact=True).input_value() == "endless"
    assert tab.page.get_by_role("slider", name="Drafted per round, K").input_value() == "5"
    ids = tab.tree("tree.nodes.getIds()")
    assert sorted(ids) == list(range(len(ids))), "all of it is there, also what the first page had been sent"
    tab.wait_for_nodes(len(ids) + 20)
    tab.button("Stop").click()
    tab.page.get_by_text("Stopped by you after").wait_for()


def test_an_address_that_was_passed_on_gives_nothing_in_another_browser(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    tab = open_tab(scripted_url)
    tab.run("endless")
    tab.wait_for_nodes(5)
    tab.page.wait_for_url("**/?visit=*")
    address = tab.page.url
    tab.page.goto("about:blank")  # the connection is lost, and the run goes on for a while
    other = open_tab(address)  # each tab of these tests is a browser of its own
    other.url = scripted_url
    other.page.get_by_text("Press Run to start").wait_for()


def test_a_second_tab_with_the_same_address_has_a_visit_of_its_own(
    open_tab: Callable[..., Tab], scripted_url: str
) -> None:
    first = open_tab(scripted_url)
    first.run("endless")
    some = first.wait_for_nodes(5)
    first.page.wait_for_url("**/?visit=*")
    second = open_tab(first.page.url)
    second.url = scripted_url
    second.page.get_by_text("Press Run to start").wait_for()
    assert second.page.locator("button:enabled", has_text="Run").count()
    second.run("talk")
    second.page.get_by_text("Finished:").wait_for()
    assert second.page.url != first.page.url
    first.wait_for_nodes(some + 20)
    first.button("Stop").click()
    first.page.get_by_text("Stopped by you after").wait_for()
