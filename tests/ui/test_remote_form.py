"""Remote targets in the sidebar, by the page's model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from specviz.core.events import Error
from specviz.ui import session
from specviz.ui.session import Visit
from tests.ui.fakes import FakeHost
from tests.ui.reachable import texts
from tests.ui.test_keys import KEY, covered

FAKE = str(Path(__file__).parent / "fake_app.py")
PATIENCE_S = 30.0
URL = "http://127.0.0.1:8000/v1"


def _page(target: str = "", url: str = "", model: str = "") -> AppTest:
    page = AppTest.from_file(FAKE, default_timeout=PATIENCE_S).run()
    if target:
        _choose(page, target)
    if url:
        page.text_input(key="base_url").set_value(url)
        page.run()
    if model:
        page.text_input(key="remote_model").set_value(model)
        page.run()
    assert not page.exception
    return page


def _choose(page: AppTest, target: str) -> None:
    box = page.selectbox(key="target")
    if target not in box.options:
        box.options.append(target)
    box.set_value(target)
    page.run()


def _visit(page: AppTest) -> Visit:
    return session.of(page.session_state["visit"])


def _said(page: AppTest) -> str:
    return "\n".join(m.value for m in [*page.markdown, *page.caption])


def _in_session_state(page: AppTest) -> str:
    """Every text that can be reached from the session state, with widgets and their callbacks."""
    return texts(page.session_state._state._state)


def _button(page: AppTest, label: str) -> Any:
    return next(b for b in page.button if b.label == label)


def _set_key(page: AppTest, key: str = KEY, url: str = URL) -> None:
    keys = _visit(page).keys
    keys.take(url, covered(key, keys.pad))


def _lights(page: AppTest) -> list[str]:
    assert not page.exception
    return [m.value for m in page.sidebar.markdown if "●" in m.value]


def test_the_fields_of_a_server_are_there_for_a_remote_target_alone() -> None:
    page = _page()
    assert {t.label for t in page.text_input} == set()
    _choose(page, "openai:")
    assert [t.label for t in page.text_input] == ["Base URL", "Model", "Tokenizer"]
    assert page.selectbox(key="verification").options == ["auto", "scoring", "prefixes", "generating"]
    assert "No model is named" in _said(page)
    _choose(page, "toy")
    assert not page.text_input and not page.error


def test_a_typed_target_brings_its_model_and_the_model_its_target() -> None:
    page = _page("openai:llama")
    assert page.text_input(key="remote_model").value == "llama"
    page.text_input(key="remote_model").set_value("qwen").run()
    assert page.selectbox(key="target").value == "openai:qwen"
    _choose(page, "openai:gpt")
    assert page.text_input(key="remote_model").value == "gpt"
    page.text_input(key="remote_model").set_value("").run()
    assert page.selectbox(key="target").value == "openai:" and "No model is named" in _said(page)


def test_a_bare_name_of_the_kind_means_a_server() -> None:
    assert [t.label for t in _page("openai").text_input] == ["Base URL", "Model", "Tokenizer"]


def test_what_is_chosen_reaches_the_run() -> None:
    page = _page("openai:", URL, "llama")
    page.text_input(key="tokenizer").set_value("smollm2-135m")
    page.selectbox(key="verification").set_value("prefixes").run()
    assert "bills the prompt" in _said(page)
    page.text_area(key="prompt").set_value("talk")
    _button(page, "Run").click().run()
    used = _visit(page).run.settings
    assert (used.target, used.base_url, used.tokenizer, used.verification) == (
        "openai:llama", URL, "smollm2-135m", "prefixes"
    )  # fmt: skip


def test_values_typed_right_before_the_click_reach_the_run() -> None:
    page = _page("openai:old", URL)
    page.text_input(key="remote_model").set_value("new")
    page.text_input(key="base_url").set_value("http://127.0.0.1:9/v1")
    page.text_area(key="prompt").set_value("talk")
    _button(page, "Run").click().run()
    used = _visit(page).run.settings
    assert (used.target, used.base_url) == ("openai:new", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("typed", "left", "with_click"),
    [
        ("http://user:sk-planted-0123@127.0.0.1:8000/v1", URL, False),
        ("http://127.0.0.1:8000/v1?api-key=sk-planted-0123", URL, True),
        ("http//user:sk-planted-0123@host", "", False),
    ],
)
def test_a_url_with_a_secret_in_it_is_refused_and_the_secret_is_gone(typed: str, left: str, with_click: bool) -> None:
    page = _page("openai:llama")
    page.text_input(key="base_url").set_value(typed)
    (_button(page, "Run").click() if with_click else page).run()
    assert any("the key has its own field" in e.value for e in page.error)
    assert page.text_input(key="base_url").value == left
    assert _visit(page).run is None
    assert "sk-planted" not in texts(_visit(page)) + _said(page) + "".join(e.value for e in page.error)
    page.run()
    assert "sk-planted" not in _in_session_state(page), "Streamlit's record of what was typed lasts for one run"


def test_the_rest_of_a_refused_url_can_be_used() -> None:
    page = _page("openai:llama", "http://user:sk-planted-0123@127.0.0.1:8000/v1")
    page.text_area(key="prompt").set_value("talk")
    _button(page, "Run").click().run()
    assert not page.error and _visit(page).run.settings.base_url == URL


def test_an_invalid_address_is_an_error_at_the_field() -> None:
    page = _page("openai:llama", "somewhere")
    assert "not an http" in page.error[0].value.replace("\\", "")
    for typed, said in {
        "http://127.0.0.1:0/v1": "The port",
        "http://127.0.0.1/v1/completions": "a single call",
    }.items():
        page.text_input(key="base_url").set_value(typed).run()
        assert said in page.error[0].value, "the sentences of the terminal"
    page.text_input(key="base_url").set_value(URL).run()
    assert not page.error


def test_first_values_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECVIZ_TARGET", "openai")
    monkeypatch.setenv("TARGET_MODEL", "llama")
    monkeypatch.setenv("TARGET_BASE_URL", "http://user:sk-planted-0123@127.0.0.1:8000/v1?x=1")
    monkeypatch.setenv("SPECVIZ_VERIFICATION", "generating")
    page = _page()
    assert page.text_input(key="base_url").value == URL and page.text_input(key="remote_model").value == "llama"
    assert page.selectbox(key="verification").value == "generating"
    assert "sk-planted" not in _in_session_state(page)


def test_a_key_to_cerebras_means_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", KEY)
    page = _page("openai:gpt-oss-120b")
    assert page.text_input(key="base_url").value == "https://api.cerebras.ai/v1"
    assert _field(page)["state"] == "environment"
    page.text_input(key="base_url").set_value(URL).run()
    assert _field(page)["state"] == "empty", "that key goes to Cerebras alone"


def _field(page: AppTest) -> dict[str, Any]:
    """The last data of the key field."""
    import json

    def found(block: Any) -> Iterator[Any]:
        for child in block.children.values():
            if hasattr(child, "children"):
                yield from found(child)
            elif getattr(child, "type", "") == "bidi_component":
                yield child.proto

    return next(json.loads(p.json) for p in found(page.sidebar) if p.component_name == "specviz_key")


def test_the_field_for_the_key_says_where_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    page = _page("openai:llama")
    assert _field(page)["state"] == "closed"
    page.text_input(key="base_url").set_value(URL).run()
    assert _field(page)["state"] == "empty"
    _set_key(page)
    page.run()
    assert (_field(page)["state"], _field(page)["text"]) == ("set", "Key set for this session")
    page.text_input(key="base_url").set_value("http://127.0.0.1:9999/v1").run()
    assert _field(page)["state"] == "empty", "a key is sent to the address that it was typed for, and nowhere else"
    monkeypatch.setenv("TARGET_API_KEY", KEY)
    page.run()
    assert (_field(page)["state"], _field(page)["text"]) == ("environment", "From the environment")


def test_a_key_reaches_the_run_and_is_never_sent_back() -> None:
    page = _page("openai:llama", URL)
    _set_key(page)
    page.text_area(key="prompt").set_value("talk")
    _button(page, "Run").click().run()
    _button(page, "Test the target")
    assert FakeHost.keys == [KEY]
    assert KEY not in str(_field(page)) and KEY not in _in_session_state(page)


def test_another_address_gets_no_key() -> None:
    page = _page("openai:llama", URL)
    _set_key(page)
    page.text_input(key="base_url").set_value("http://127.0.0.1:9999/v1").run()
    _button(page, "Test the target").click().run()
    assert FakeHost.keys == [None]


@pytest.mark.parametrize(
    ("model", "light"),
    [("scores", "green-[●] answers"), ("writes", "orange-[●] limited"), ("broken", "red-[●] failed")],
)
def test_a_test_of_the_target_changes_the_light(model: str, light: str) -> None:
    page = _page("openai:", URL, model)
    assert _lights(page) == [":gray[●] :small[not tested]"] * 2
    _button(page, "Test the target").click().run()
    colour, word = light.split("-[●] ")
    assert _lights(page) == [f":{colour}[●] :small[{word}]", ":gray[●] :small[not tested]"]
    said = _said(page).replace("\\", "")
    if model == "broken":
        assert "No connection" in page.error[0].value and "Is the server running" in page.error[0].value
    else:
        assert "123 ms to the first token, 45.6 tokens/s" in said and "Hello <b>there</b>" in said
        assert [e.label for e in page.sidebar.expander][0] == "What this server can do"
    if model == "scores":
        assert "vLLM 0.32.0" in said and "20 per position" in said and "<b>given</b>" in said
    if model == "writes":
        assert "saves nothing against streaming" in said


def test_the_result_of_a_test_is_dropped_when_its_settings_change() -> None:
    page = _page("openai:", URL, "scores")
    _button(page, "Test the target").click().run()
    assert "answers" in _lights(page)[0]
    page.slider(key="k").set_value(7).run()
    assert "answers" in _lights(page)[0]
    page.text_input(key="remote_model").set_value("writes").run()
    assert "not tested" in _lights(page)[0] and "What this server can do" not in [e.label for e in page.expander]


def _until_done(page: AppTest) -> None:
    for _ in range(100):
        if _visit(page).run.done:
            break
        page.run()
    page.run()


def test_the_light_follows_the_last_run_of_the_same_target() -> None:
    page = _page("openai:", URL, "scores")
    for prompt, light in (("remote", "answers"), ("remote fails", "failed")):
        page.text_area(key="prompt").set_value(prompt)
        _button(page, "Run").click().run()
        _until_done(page)
        assert light in _lights(page)[0] and "In the last run" in _said(page)
    _button(page, "Test the target").click().run()
    assert "answers" in _lights(page)[0] and "In the last run" not in _said(page)
    page.text_input(key="remote_model").set_value("writes").run()
    assert "not tested" in _lights(page)[0]


def test_local_pairs_are_tested_too() -> None:
    page = _page("toy")
    _button(page, "Test the draft").click().run()
    assert "not tested" in _lights(page)[0] and "answers" in _lights(page)[1]


def test_a_running_test_shows_its_progress_and_can_be_cancelled() -> None:
    page = _page("openai:", URL, "slow")
    _button(page, "Test the target").click().run()
    assert "testing" in _lights(page)[0]
    assert any("Asking the target for its first words: 3 of 8 tokens" in str(p.proto) for p in page.get("progress"))
    assert _button(page, "Test the draft").disabled and "One test at a time" in _button(page, "Test the draft").help
    _button(page, "Cancel").click().run()
    assert "not tested" in _lights(page)[0] and not page.error
    assert not _button(page, "Test the target").disabled


class _Ends:
    """A test that fails after this many polls."""

    def __init__(self, check: Any, looks: int) -> None:
        self._check, self._looks = check, looks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._check, name)

    @property
    def live(self) -> bool:
        self._looks -= 1
        if self._looks == 0:
            self._check.live = False
            self._check.error = Error("UnreachableError", "No connection.", "Is it running?")
        return bool(self._check.live)


@pytest.mark.parametrize("looks", range(1, 13))
def test_a_test_may_end_at_any_point_while_the_page_is_drawn(looks: int) -> None:
    page = _page("openai:", URL, "slow")
    _button(page, "Test the target").click().run()
    checks = _visit(page).checks
    checks["target"] = _Ends(checks["target"], looks)  # type: ignore[assignment]
    page.run()
    page.run()  # a poll
    assert "failed" in _lights(page)[0] and "No connection" in page.error[0].value
    assert not _button(page, "Test the target").disabled and not _button(page, "Test the draft").disabled


def test_no_test_can_start_during_a_run_and_the_reason_is_shown() -> None:
    page = _page("openai:", URL, "scores")
    page.text_area(key="prompt").set_value("endless")
    _button(page, "Run").click().run()
    for what in ("target", "draft"):
        button = _button(page, f"Test the {what}")
        assert button.disabled and "run is going on" in button.help
    _button(page, "Stop").click().run()
    page.run()
    assert not _button(page, "Test the target").disabled


def test_there_is_no_draft_to_test_in_plain_decoding() -> None:
    page = _page("toy")
    box = page.selectbox(key="draft")
    box.options.append("none")
    box.set_value("none").run()
    assert _button(page, "Test the draft").disabled and "no draft" in _button(page, "Test the draft").help


def test_a_target_without_a_model_is_refused_with_the_remedy() -> None:
    page = _page("openai:", URL)
    _button(page, "Test the target").click().run()
    assert "no model" in page.error[0].value and "not tested" in _lights(page)[0]
    page.text_input(key="remote_model").set_value("scores").run()
    assert not page.error


def test_the_end_of_a_visit_forgets_the_key_and_ends_its_tests() -> None:
    page = _page("openai:", URL, "slow")
    _set_key(page)
    _button(page, "Test the target").click().run()
    visit = _visit(page)
    visit.connected = lambda: False
    visit.left(grace_s=0.01).join(PATIENCE_S)
    assert visit.keys.get(URL) is None and not visit.checks["target"].live


def test_a_reload_keeps_the_key() -> None:
    page = _page("openai:llama", URL)
    _set_key(page)
    page.text_area(key="prompt").set_value("endless")
    _button(page, "Run").click().run()
    visit = _visit(page)
    visit.connected = lambda: False
    visit.left().cancel()
    heir = visit.hand_over(visit.browser)
    assert heir.keys.get(URL).value == KEY and visit.keys.get(URL) is None


def test_nothing_of_a_visit_can_be_reached_from_session_state() -> None:
    page = _page("openai:llama", URL)
    _set_key(page)
    page.text_area(key="prompt").set_value("talk")
    _button(page, "Run").click().run()
    _button(page, "Test the draft")
    assert KEY in texts(_visit(page)), "the search finds what is there"
    state = _in_session_state(page)
    assert KEY not in state and URL in state


def test_an_address_where_others_could_read_the_key_says_so_at_the_field() -> None:
    page = _page("openai:llama", "http://models.example.com/v1")
    assert "everybody on the way there can read the key" in _said(page)
    page.text_input(key="base_url").set_value(URL).run()
    assert "sent to this address only" in _said(page) and "everybody" not in _said(page)
