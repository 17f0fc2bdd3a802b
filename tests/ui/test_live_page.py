"""The Live page by its model: AppTest runs fragments inline and has no browser, no timers and no scripts."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from streamlit.elements.lib import policies
from streamlit.testing.v1 import AppTest

from specviz.core import names
from specviz.ui import session
from specviz.ui.live_view import LiveView
from specviz.ui.session import Visit
from tests.ui.fakes import FakeCatalog, FakeHost

ROOT = Path(__file__).parents[2]
FAKE = str(Path(__file__).parent / "fake_app.py")
PATIENCE_S = 30.0


def _page(script: str = FAKE) -> AppTest:
    page = AppTest.from_file(script, default_timeout=PATIENCE_S).run()
    assert not page.exception
    return page


def _visit(page: AppTest) -> Visit:
    return session.of(page.session_state["visit"])


def _run(page: AppTest, prompt: str) -> AppTest:
    page.text_area(key="prompt").set_value(prompt)
    page.button[0].click().run()
    assert not page.exception
    return page


def _type(page: AppTest, key: str, text: str) -> None:
    """Type a name that is not in the list; AppTest can only choose."""
    box = page.selectbox(key=key)
    box.options.append(text)
    box.set_value(text)


def _until_done(page: AppTest) -> AppTest:
    """What the browser's timers do: poll until the run has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while not _visit(page).run.done:
        assert time.monotonic() < deadline, "the run did not end"
        page.run()
    assert not page.exception
    _visit(page).view = LiveView()  # as for a browser that holds nothing yet: everything is sent
    return page.run()


def _buttons(page: AppTest) -> dict[str, bool]:
    return {b.label: not b.disabled for b in page.main.button}


def _said(page: AppTest) -> str:
    return "\n".join(m.value for m in [*page.markdown, *page.caption])


def _components(page: AppTest) -> dict[str, dict[str, Any]]:
    """Component name → the data it was sent last."""
    found: dict[str, dict[str, Any]] = {}

    def walk(block: Any) -> None:
        for child in block.children.values():
            if hasattr(child, "children"):
                walk(child)
            elif getattr(child, "type", "") == "bidi_component":
                found[child.proto.component_name] = json.loads(child.proto.json or "{}")

    walk(page._tree)
    return found


def _charts(page: AppTest) -> dict[str, dict[str, Any]]:
    """Name → the chart as it was sent last, of both places."""
    sent = [json.loads(c.proto.json) for c in page.get("bidi_component") if c.proto.component_name == "specviz_charts"]
    return {item["name"]: item["figure"] for message in sent for item in message["items"]}


def test_a_first_visit_invites_and_explains_the_colours() -> None:
    page = _page()
    assert "Press Run" in "".join(h.proto.body for h in page.get("html"))
    assert _buttons(page) == {"Run": True, "Stop": False}
    assert not page.metric and not page.error
    assert "<b>rejected</b>" in "".join(h.proto.body for h in page.get("html"))


def test_a_toy_run_through_to_the_end(toy: None) -> None:
    page = _until_done(_run(_page(str(ROOT / "app.py")), "Hello"))
    assert page.success[0].value.startswith("Finished:")
    assert "green-badge[EXACT]" in _said(page)
    assert _buttons(page)["Run"] and not _buttons(page)["Stop"]
    values = {m.label: m.value for m in page.metric}
    assert re.fullmatch(r"[\d,]+", values["Output"]) and values["Output"] != "0"
    assert "n/a" not in values.values()


def test_the_environment_sets_the_first_values(toy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECULATION_K", "7")
    monkeypatch.setenv("MAX_TOKENS", "8")
    page = _page()
    assert page.selectbox(key="target").value == "toy" and page.slider(key="k").value == 7
    assert page.number_input(key="max_tokens").value == 8


def test_a_bad_environment_is_one_clear_error_and_the_page_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECULATION_K", "99")
    page = _page()
    assert len(page.error) == 1 and "99" in page.error[0].value and "16" in page.error[0].value
    assert _until_done(_run(page, "talk")).success


def test_one_bad_variable_leaves_the_good_ones_in_force(toy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"SPECULATION_K": "99", "TEMPERATURE": "warm", "MAX_TOKENS": "200"}.items():
        monkeypatch.setenv(name, text)
    page = _page()
    (error,) = (e.value.replace("\\", "") for e in page.error)
    assert "SPECULATION_K: K must be a whole number from 1 to 16, not 99." in error
    assert error.count("TEMPERATURE") == 1 and "MAX_TOKENS" not in error
    assert page.selectbox(key="target").value == page.selectbox(key="draft").value == "toy"
    assert page.number_input(key="max_tokens").value == 200
    assert page.slider(key="k").value == 4 and page.slider(key="temperature").value == 0.0


def test_small_values_of_the_environment_are_not_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"SPECVIZ_TOP_P": 0.005, "SPECVIZ_TAU": 0.02, "TEMPERATURE": 0.333, "SPECVIZ_SEED": 2**53 - 1}
    for name, value in values.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("SPECVIZ_RULE", "threshold")
    page = _until_done(_run(_page(), "talk"))
    assert not page.error
    used = _visit(page).run.settings
    assert [used.top_p, used.tau, used.temperature, used.seed] == list(values.values())


@pytest.mark.parametrize(("variable", "key"), [("SPECVIZ_SEED", "seed"), ("SPECVIZ_TOP_K", "top_k")])
def test_a_number_that_no_browser_holds_is_refused_and_not_changed(
    monkeypatch: pytest.MonkeyPatch, variable: str, key: str
) -> None:
    monkeypatch.setenv(variable, str(2**53))
    page = _page()
    assert variable in page.error[0].value.replace("\\", "") and str(2**53) in page.error[0].value
    assert page.number_input(key=key).value == 0


@pytest.mark.parametrize("prompt", ["", "  \n"])
def test_an_empty_prompt_is_refused_and_everything_is_kept(prompt: str) -> None:
    page = _page()
    page.slider(key="k").set_value(9).run()
    page = _run(page, prompt)
    assert [e.value for e in page.error] == ["**The prompt is empty.**\n\nType a question, or choose an example."]
    assert page.slider(key="k").value == 9 and page.text_area(key="prompt").value == prompt
    assert _visit(page).run is None
    page = _until_done(_run(page, "talk"))
    assert not page.error, "a run that starts takes the complaint away"


def test_a_refusal_disappears_once_its_cause_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECVIZ_TARGET", "nowhere/nothing")
    page = _run(_page(), "talk")
    assert page.error
    page.run()
    assert page.error, "it stays as long as the same thing is asked for"
    page.selectbox(key="target").set_value("toy").run()
    assert not page.error
    page = _run(page, " ")
    assert "prompt is empty" in page.error[0].value
    page.text_area(key="prompt").set_value("talk").run()
    assert not page.error


@pytest.mark.parametrize(
    ("target", "draft", "meant"),
    [
        ("smollm2-135m", "smollm2-135m", ("local:smollm2-135m", "model:smollm2-135m")),
        (" smolLM2 135m ", "N-Gram Lookup", ("local:smollm2-135m", "ngram")),
        ("TOY", "toy draft", ("toy", "toy")),
        ("toy", "toy", ("toy", "toy")),
    ],
)
def test_typed_names_are_completed_and_titles_are_understood(
    monkeypatch: pytest.MonkeyPatch, target: str, draft: str, meant: tuple[str, str]
) -> None:
    monkeypatch.setattr(FakeCatalog, "fetched", False)
    page = _page()
    _type(page, "target", target)
    _type(page, "draft", draft)
    page = _until_done(_run(page, "talk"))
    run = _visit(page).run
    assert (run.settings.target, run.settings.draft) == meant
    if meant[0] != "toy":
        assert "135 M parameters" in _said(page), "what the list says about a model is said about a typed one"


def test_a_default_draft_follows_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_DEFAULT_DRAFTS", {"toy": "toy"})
    page = _page()
    draft = page.selectbox(key="draft")
    assert draft.value == "ngram"
    labels = draft.options
    page.selectbox(key="target").set_value("toy").run()
    assert page.selectbox(key="draft").value == "toy" and page.selectbox(key="draft").options == labels
    assert not page.warning and not page.exception
    page.selectbox(key="target").set_value("local:smollm2-135m").run()
    assert page.selectbox(key="draft").value == "ngram"
    page.selectbox(key="draft").set_value("toy").run()
    page.selectbox(key="target").set_value("toy").run()
    page.selectbox(key="draft").set_value("ngram").run()
    page.selectbox(key="target").set_value("local:smollm2-135m").run()
    assert page.selectbox(key="draft").value == "ngram", "what was chosen stays"


def test_a_default_further_down_the_list_is_replaced_without_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(policies, "_shown_default_value_warning", False)
    monkeypatch.setattr(policies._LOGGER, "propagate", True)
    monkeypatch.setattr(names, "_DEFAULT_DRAFTS", {"toy": "toy"})
    monkeypatch.setenv("SPECVIZ_TARGET", "toy")
    page = _page()
    assert page.selectbox(key="draft").value == "toy"
    page.selectbox(key="target").set_value("local:smollm2-135m").run()
    assert page.selectbox(key="draft").value == "ngram"
    assert "default value" not in caplog.text and not page.exception


def test_a_target_typed_right_before_the_click_gets_its_default_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_DEFAULT_DRAFTS", {"toy": "toy"})
    page = _page()
    page.selectbox(key="target").set_value("toy")
    page = _until_done(_run(page, "talk"))
    run = _visit(page).run
    assert (run.settings.target, run.settings.draft) == ("toy", "toy")


def test_a_draft_of_the_environment_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_DEFAULT_DRAFTS", {"toy": "toy"})
    monkeypatch.setenv("DRAFT_MODEL", "none")
    page = _page()
    page.selectbox(key="target").set_value("toy").run()
    assert page.selectbox(key="draft").value == "none"


def test_a_draft_can_be_ended_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECVIZ_MIN_CONFIDENCE", "0.97")
    page = _page()
    slider = page.slider(key="min_confidence")
    assert slider.label == "End a draft early" and slider.value == 0.97
    slider.set_value(0.3).run()
    page = _until_done(_run(page, "talk"))
    assert _visit(page).run.settings.min_confidence == 0.3


def test_an_unknown_name_is_refused_and_the_run_before_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECVIZ_TARGET", "nowhere/nothing")
    page = _page()
    page.selectbox(key="target").set_value("toy").run()
    page = _until_done(_run(page, "talk"))
    before = _visit(page).run
    _type(page, "target", "nowhere/nothing")
    page = _run(page, "talk")
    assert "nowhere/nothing" in page.error[0].value
    assert _visit(page).run is before and page.metric


def test_a_bug_on_run_is_shown_and_the_page_stays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("<b>lost</b>")

    page = _page()
    page.slider(key="k").set_value(9).run()
    with monkeypatch.context() as patched:
        patched.setattr(FakeHost, "start", broken)
        page = _run(page, "talk")
    assert "KeyError" in page.error[0].value and "please report it" in page.error[0].value
    assert "<b>" not in page.error[0].value
    assert "KeyError" in caplog.text, "the log has the traceback"
    assert page.slider(key="k").value == 9 and page.text_area(key="prompt").value == "talk"
    assert not _until_done(_run(page, "talk")).error


def test_a_prompt_that_does_not_fit_is_an_error_of_the_run(toy: None) -> None:
    page = _until_done(_run(_page(str(ROOT / "app.py")), "word " * 5000))
    assert "context" in page.error[0].value and "Shorten" in page.error[0].value
    assert page.text_area(key="prompt").value.startswith("word word")
    assert not page.metric, "there is nothing to measure"


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        ("queued", "Waiting for 2 other runs"),
        ("loading", "Loading SmolLM2-135M-Instruct"),
    ],
)
def test_a_wait_says_what_for(scene: str, said: str) -> None:
    page = _run(_page(), scene)
    assert said.replace("-", "\\-") in page.info[0].value or said in page.info[0].value
    assert _buttons(page) == {"Run": False, "Stop": True, "Pause": True, "Step": True}
    assert {m.label: m.value for m in page.metric}["Speed-up"] == "n/a"


def test_a_failure_keeps_what_was_written() -> None:
    page = _until_done(_run(_page(), "fails"))
    error = page.error[0].value
    assert "The target went away" in error and "Start it again" in error and "is below" in error
    assert "<b>" not in error.replace("\\<b\\>", "")
    assert {m.label: m.value for m in page.metric}["Output"] == "20"


def test_a_failure_at_once_shows_no_empty_charts() -> None:
    page = _until_done(_run(_page(), "fails at once"))
    assert "is below" not in page.error[0].value and not page.metric


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("stop_token", "the model ended its answer at once."),
        ("stop_string", "the stop string “END” appeared before any other text."),
        ("max_tokens", "the token budget is used up by tokens without text."),
        ("context_full", "the context window is full."),
    ],
)
def test_an_empty_output_is_said_with_its_reason(reason: str, said: str) -> None:
    page = _until_done(_run(_page(), f"empty: {reason}"))
    assert page.warning[0].value.startswith("There is no text: " + said)


def test_stop_ends_the_run_and_the_page_says_so() -> None:
    page = _run(_page(), "endless")
    page.button[1].click().run()
    page = _until_done(page)
    assert page.warning[0].value.startswith("Stopped by you after")
    assert _visit(page).run.stops >= 1


def test_changes_while_a_run_goes_on_are_for_the_next_run() -> None:
    page = _run(_page(), "endless")
    run = _visit(page).run
    page.slider(key="k").set_value(11).run()
    page.selectbox(key="rule").set_value("threshold").run()
    assert not page.exception and _visit(page).run is run and not run.stops
    assert run.settings.k == 4 and "rule **probabilistic**" in _said(page)
    assert page.slider(key="tau").value == 0.3
    page.button[1].click().run()
    page = _run(_until_done(page), "talk")
    assert _visit(page).run.settings.k == 11
    assert _visit(page).run.settings.rule == "threshold"


def test_tau_is_shown_only_for_the_rule_threshold() -> None:
    page = _page()
    assert "tau" not in [s.key for s in page.slider]
    page.selectbox(key="rule").set_value("threshold").run()
    assert "tau" in [s.key for s in page.slider]
    assert "LOSSY" in _said(page)


def test_each_choice_says_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeCatalog, "fetched", False)
    page = _page()
    page.selectbox(key="target").set_value("local:smollm2-135m").run()
    assert "93 MB to download" in _said(page)
    page.selectbox(key="draft").set_value("toy").run()
    assert "Its vocabulary is its own" in _said(page)


def test_labels_of_choices_stay_when_a_model_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeCatalog, "fetched", False)
    before = _page().selectbox(key="target").options
    monkeypatch.setattr(FakeCatalog, "fetched", True)
    assert _page().selectbox(key="target").options == before


def test_an_example_fills_the_prompt() -> None:
    page = _page()
    page.button_group(key="example").set_value("Code").run()
    assert "class Stack" in (page.text_area(key="prompt").value or "")


def test_polled_components_are_sent_deltas_and_hostile_text_as_data() -> None:
    page = _until_done(_run(_page(), "hostile"))
    sent = _components(page)
    tree, text = sent["specviz_tree"], sent["specviz_text"]
    assert tree["from"] == 0 and tree["to"] > 0 and len(tree["items"]) == sum(tree["counts"].values())
    assert any("<script>" in i.get("text", "") for i in text["items"])
    said = _said(page)
    assert not re.search(r"(?<!\\)<", said), "nothing opens a tag: a backslash stands in front"
