"""A remote target on the page, in a real browser, with a toy server on the loopback behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import Tab, Watched
from tests.browser.located import box_of, text_of
from tests.browser.servers import Toy, serve

pytestmark = pytest.mark.browser

KEY = "sk-planted-0123456789"
#: Every text of a page, that in shadow roots and in fields included.
ALL_TEXT = """() => {
  const all = (root) => [...root.querySelectorAll("*")].flatMap((e) =>
    [e.outerHTML, e.value ?? "", ...(e.shadowRoot ? all(e.shadowRoot) : [])]);
  return [document.documentElement.outerHTML, ...all(document)].join("\\n") + JSON.stringify(localStorage)
    + JSON.stringify(sessionStorage);
}"""


def _fill(tab: Tab, label: str, text: str) -> None:
    field = tab.page.get_by_role("textbox", name=label, exact=True)
    field.fill(text)
    field.press("Tab")


def _choose_server(tab: Tab, url: str, model: str = "toy") -> None:
    tab.page.get_by_role("combobox", name="Target").fill(f"openai:{model}")
    tab.page.keyboard.press("Enter")
    _fill(tab, "Base URL", url)
    _fill(tab, "Tokenizer", "toy")
    # What is sent while the page still answers something else may be dropped by Streamlit, clicks as well.
    tab.page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def _until_enabled(tab: Tab, button: str, *, enabled: bool = True) -> None:
    from playwright.sync_api import expect

    expect(tab.page.get_by_role("button", name=button)).to_be_enabled(enabled=enabled, timeout=30_000)


def _key_field(tab: Tab) -> Any:
    return tab.page.locator("input[type=password]")


def test_a_key_goes_to_the_server_and_nowhere_else(watched: Watched, open_tab: Callable[..., Tab]) -> None:
    toy = Toy(key=KEY)
    with serve(toy) as url:
        tab = open_tab(watched.url)
        _choose_server(tab, url)
        tab.page.locator("input[type=password]:enabled").fill(KEY)
        # Straight from the field to the button: the key is on its way together with the click.
        tab.button("Test the target").click()
        tab.page.get_by_text("Key set for this session").wait_for()
        tab.page.get_by_text("answers", exact=True).wait_for()
        tab.run("Hello")
        tab.page.get_by_text("Finished:").wait_for()
        with tab.page.expect_download() as download:
            tab.button("Download trace").click()
        trace = download.value.path().read_text()
        shown = tab.page.evaluate(ALL_TEXT) + tab.page.url
        tab.page.get_by_text("Key set for this session").wait_for()
        tab.button("Forget").click()
        tab.page.locator("input[type=password]").wait_for()
        tab.button("Test the target").click()
        tab.page.get_by_text("failed", exact=True).wait_for()
        shown += tab.page.evaluate(ALL_TEXT)
    assert toy.requests, "the server let it in"
    for where, text in {
        "trace": trace, "page": shown, "log": watched.log.read_text(), "session state": watched.dump.read_text()
    }.items():  # fmt: skip
        assert KEY not in text and KEY.encode().hex() not in text, f"the key is in the {where}"
        assert text.count(url) or where == "log", f"the {where} that was looked at is the right one"


def test_a_key_of_the_environment_needs_no_typing_and_can_be_replaced(
    serve_page: Callable[..., str], open_tab: Callable[..., Tab]
) -> None:
    with serve(Toy(key=KEY)) as url:
        tab = open_tab(serve_page(SPECVIZ_TARGET="openai:toy", TARGET_BASE_URL=url, TARGET_TOKENIZER="toy",
                                  DRAFT_MODEL="toy", TARGET_API_KEY=KEY))  # fmt: skip
        tab.page.get_by_text("From the environment").wait_for()
        assert not _key_field(tab).is_visible()
        tab.button("Test the target").click()
        tab.page.get_by_text("answers", exact=True).wait_for()
        tab.button("Change").click()
        _key_field(tab).fill("another-key-000")
        _key_field(tab).press("Enter")
        tab.page.get_by_text("Key set for this session").wait_for()
        tab.button("Test the target").click()
        tab.page.get_by_text("failed", exact=True).wait_for()
        assert KEY not in tab.page.evaluate(ALL_TEXT)


def test_a_run_shows_the_way_what_was_sent_the_bill_and_both_baselines(
    remote_url: str, open_tab: Callable[..., Tab]
) -> None:
    with serve(Toy()) as url:
        tab = open_tab(remote_url)
        _choose_server(tab, url)
        tab.run("Hello")
        tab.page.get_by_text("Finished:").wait_for()
        tab.page.get_by_text("scored by the server").wait_for()
        tab.page.get_by_text("Billed tokens", exact=True).wait_for()
        tab.page.get_by_text("What was sent").click()
        assert "Hello" in text_of(tab.page.locator("[data-testid=stExpander] code"))
        chart = tab.page.locator("[data-chart=speed]")
        chart.get_by_text("streaming", exact=True).wait_for()
        chart.get_by_text("one call per token", exact=True).wait_for()
        with tab.page.expect_download() as download:
            tab.button("Download trace").click()
        events = [json.loads(line) for line in download.value.path().read_text().splitlines()]
        assert next(e for e in events if e["type"] == "run_started")["way"] == "scoring"


def test_what_came_before_a_server_died_stays_with_the_error_on_top(
    remote_url: str, open_tab: Callable[..., Tab]
) -> None:
    toy = Toy()
    with serve(toy) as url:
        tab = open_tab(remote_url)
        _choose_server(tab, url)
        tab.button("Test the target").click()
        tab.page.get_by_text("answers", exact=True).wait_for()
        toy.scores = 3
        tab.run("Hello, tell me about tokens")
        tab.page.get_by_text("The model was unloaded.").wait_for()
        tab.page.get_by_text("The text generated until then is below.").wait_for()
        tab.wait_for_nodes(12)
        assert tab.page.locator(".token").count() > 3
        assert tab.page.get_by_text("Billed tokens").count() and tab.page.get_by_text("What was sent").count()
        tab.page.get_by_text("failed", exact=True).wait_for()
        tab.page.locator("button:enabled", has_text="Run").wait_for()


def test_a_wait_for_a_busy_server_is_shown_and_stop_ends_it(remote_url: str, open_tab: Callable[..., Tab]) -> None:
    toy = Toy()
    with serve(toy) as url:
        tab = open_tab(remote_url)
        _choose_server(tab, url)
        tab.button("Test the target").click()
        tab.page.get_by_text("answers", exact=True).wait_for()
        toy.statuses += [503] * 50
        tab.run("Hello")
        tab.page.get_by_text("503").first.wait_for()
        tab.button("Stop").click()
        tab.page.get_by_text("Stopped by you after 0 tokens").wait_for(timeout=10_000)


def test_a_server_that_is_not_there_is_a_red_light_with_a_remedy(remote_url: str, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(remote_url)
    with serve(Toy()) as url:
        pass
    _choose_server(tab, url)
    tab.button("Test the target").click()
    tab.page.get_by_text("failed", exact=True).wait_for()
    tab.page.get_by_text("Nothing answers at").wait_for()
    _until_enabled(tab, "Test the target")


def test_what_cannot_be_a_key_stops_the_click_and_nothing_moves_from_under_the_next(
    remote_url: str, open_tab: Callable[..., Tab]
) -> None:
    with serve(Toy()) as url:
        tab = open_tab(remote_url)
        _choose_server(tab, url)
        tab.page.locator("input[type=password]:enabled").fill("two words")
        tab.button("Test the target").click()
        # At the field, and with the click that it stopped.
        said = tab.page.get_by_text("A key has letters, digits and signs")
        said.first.wait_for()
        assert _key_field(tab).input_value() == "" and not tab.page.get_by_text("Key set").is_visible()
        _key_field(tab).fill(KEY)
        below = box_of(tab.button("Test the target"))
        _key_field(tab).press("Enter")
        tab.page.get_by_text("Key set for this session").wait_for()
        said.first.wait_for(state="detached")
        assert box_of(tab.button("Test the target")) == below
        tab.button("Test the target").click()
        tab.page.get_by_text("answers", exact=True).wait_for()


def test_a_test_that_waits_can_be_cancelled(remote_url: str, open_tab: Callable[..., Tab]) -> None:
    toy = Toy()
    with serve(toy) as url:
        toy.statuses += [503] * 50
        tab = open_tab(remote_url)
        _choose_server(tab, url)
        tab.button("Test the target").click()
        tab.page.get_by_text("testing", exact=True).wait_for()
        _until_enabled(tab, "Test the draft", enabled=False)
        tab.button("Cancel").click()
        tab.page.get_by_text("not tested", exact=True).first.wait_for()
        _until_enabled(tab, "Test the target")


def test_a_test_of_a_local_pair(toy_url: str, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(toy_url)
    for what in ("target", "draft"):
        tab.button(f"Test the {what}").click()
        _until_enabled(tab, f"Test the {what}")
        tab.page.get_by_text("answers", exact=True).nth(0 if what == "target" else 1).wait_for()
    assert tab.page.get_by_text("ms to the first token").count() == 2


@pytest.mark.parametrize("gap_ms", [0, 10, 40])
def test_a_key_arrives_however_soon_a_click_follows_it(
    remote_url: str, open_tab: Callable[..., Tab], gap_ms: int
) -> None:
    tab = open_tab(remote_url)
    with serve(Toy(key=KEY)) as url:
        _choose_server(tab, url)
        tab.page.locator("input[type=password]:enabled").fill(KEY)
        # In one script, so that nothing but the page's own work lies between the two.
        tab.page.evaluate(
            """async (gap) => {
              const inside = (root, found) => { for (const e of root.querySelectorAll("*")) {
                if (found(e)) return e;
                const deeper = e.shadowRoot && inside(e.shadowRoot, found); if (deeper) return deeper; } };
              inside(document, (e) => e.type === "password").dispatchEvent(new Event("change"));
              await new Promise((done) => setTimeout(done, gap));
              [...document.querySelectorAll("button")].find((b) => b.innerText.trim() === "Test the target").click();
            }""",
            gap_ms,
        )
        tab.page.get_by_text("Key set for this session").wait_for()
        tab.page.get_by_text("answers", exact=True).wait_for()
