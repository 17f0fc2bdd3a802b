from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from specviz.core.events import Error
from specviz.core.guarantee import Guarantee
from specviz.host.trial import TrialOutcome
from specviz.targets.completions.values import Findings
from specviz.views import trial
from tests.views.scripted import Story

SCORES = Findings(
    engine="vllm", version="0.32.0", model="m", ids_in=True, ids_out=True, batch=True, scores=True, top=20
)
WRITES = Findings(model="m")


def _trial(**given: Any) -> TrialOutcome:
    return TrialOutcome("target", "openai:m", 120.0, 40.0, " Hello", **given)


def _check(result: TrialOutcome | None = None, error: Error | None = None, live: bool = False) -> SimpleNamespace:
    return SimpleNamespace(result=result, error=error, live=live)


@pytest.mark.parametrize(
    ("check", "light"),
    [
        (None, ("gray", "not tested")),
        (_check(live=True), ("gray", "testing")),
        (_check(), ("gray", "not tested")),
        (_check(_trial()), ("green", "answers")),
        (_check(_trial(findings=SCORES)), ("green", "answers")),
        (_check(_trial(findings=WRITES)), ("orange", "limited")),
        (_check(_trial(note="Its context is full.")), ("orange", "limited")),
        (_check(_trial(guarantee=Guarantee("UNKNOWN", "Texts differ."))), ("orange", "limited")),
        (_check(error=Error("UnreachableError", "No answer.")), ("red", "failed")),
    ],
)
def test_the_light_has_a_colour_and_a_word(check: Any, light: tuple[str, str]) -> None:
    assert trial.light(check) == light


def test_a_newer_run_replaces_the_result_of_an_older_test() -> None:
    talked = Story(way="scoring").round(["a"], 1, "b")
    green: tuple[trial.Light, str] = ("green", "answers")
    grey: tuple[trial.Light, str] = ("gray", "not tested")
    assert trial.light_of_run(talked.state(), grey)[:2] == green
    assert trial.light_of_run(talked.state(), ("orange", "limited")) == ("orange", "limited", "")
    assert trial.light_of_run(Story().state(), grey) == (*grey, "")
    assert trial.light_of_run(talked.failed("odd").state(), green) == (*green, ""), "no fault of the server's"
    talked.events[-1] = Error("UnreachableError", "No answer.")
    assert trial.light_of_run(talked.state(), green)[:2] == ("red", "failed")


def test_every_limit_is_stated() -> None:
    (generates,) = trial.limits(_trial(findings=WRITES))
    assert "saves nothing" in generates
    strange = Findings(batch=True, same_tokens=False)
    assert "tokenizer" in trial.limits(_trial(findings=strange))[0]
    assert trial.limits(TrialOutcome("target", "m", 1.0, 1.0, " ")) == ["It generated no text."]
    assert trial.limits(_trial(findings=SCORES, guarantee=Guarantee("EXACT", ""))) == []


def test_what_is_not_known_is_left_out_of_the_timing() -> None:
    assert trial.timing(_trial()) == "120 ms to the first token, 40.0 tokens/s"
    assert trial.timing(TrialOutcome("draft", "d", 0.25, 1234.5, "")) == "0.2 ms to the first token, 1,234 tokens/s"
    assert trial.timing(TrialOutcome("draft", "d", None, None, "")) == ""


def test_first_words_stay_in_one_line_and_are_cut() -> None:
    assert trial.first_words(TrialOutcome("target", "m", 1.0, 1.0, "Hi\n\nthere\x00")) == "“Hi there␀”"
    assert len(trial.first_words(TrialOutcome("target", "m", 1.0, 1.0, "word " * 900))) < 100
    assert trial.first_words(TrialOutcome("target", "m", 1.0, 1.0, " ")) == ""


def test_findings_in_words() -> None:
    rows = dict(trial.findings(SCORES))
    assert rows["Server"] == "vLLM 0.32.0" and rows["Top log-probabilities"] == "20 per position"
    assert rows["Ways to verify"] == "scores given tokens; takes prefixes in one call; generates"
    assert rows["Token ids"] == "accepted and returned"
    rows = dict(trial.findings(Findings(top=5, after_temperature=True, bos_added=True, latency_ms=12.0)))
    assert (
        rows["Top log-probabilities"] == "5 per position, after temperature"
        and rows["Server"] == "not recognised"
        and rows["Context"] == "n/a"
    )


def test_a_servers_own_names_are_cut_and_are_not_markup() -> None:
    rows = trial.findings(Findings(engine="vllm", version="<b>" + "9" * 5000, notes=("x" * 5000,)))
    assert max(len(value) for _, value in rows) <= 300
    assert "<b>" not in trial.table(rows).replace("\\<b\\>", "")
    assert len(trial.notes(Findings(notes=("x" * 5000,)))[0]) <= 300
