"""Tests of target and draft as jobs of the model host."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from specviz.core.connection import Secret
from specviz.core.errors import RunError, UnknownModelError, UnreachableError
from specviz.core.pair import Pair
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait
from specviz.host.check import Check
from specviz.host.models import ModelHost
from specviz.host.trial import TrialOutcome
from specviz.setup.builder import Builder
from specviz.setup.validation import check
from specviz.targets.completions.values import Findings

TOY = Settings(target="toy", draft="toy", max_tokens=20)
PATIENCE_S = 20.0


class Gate:
    """A builder that waits until it is released, and records its calls."""

    def __init__(self) -> None:
        self.open, self.reached = threading.Event(), threading.Event()
        self.built: list[tuple[Settings, Secret | None]] = []
        self.failure: Exception | None = None
        self.closed = 0

    def build(self, settings: Settings, wait: Wait = Wait(), key: Secret | None = None) -> Pair:
        self.built.append((settings, key))
        wait.on_progress(Progress("Waiting"))
        self.reached.set()
        assert self.open.wait(PATIENCE_S)
        if self.failure is not None:
            raise self.failure
        pair = Builder().build(settings)
        return Pair(pair.drafter, pair.target, close=self._close)

    def _close(self) -> None:
        self.closed += 1


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def host(gate: Gate) -> Iterator[ModelHost]:
    made = ModelHost(lambda: gate, check)
    yield made
    gate.open.set()
    made.close()


def _ended(job: Any) -> Any:
    assert job._finished.wait(PATIENCE_S)
    return job


@pytest.mark.parametrize("what", ["target", "draft"])
def test_a_test_runs_on_the_host_and_gives_figures(host: ModelHost, gate: Gate, what: Any) -> None:
    tested = host.test(what, TOY)
    assert gate.reached.wait(PATIENCE_S) and tested.live and tested.progress == Progress("Waiting")
    gate.open.set()
    _ended(tested)
    assert not tested.live and tested.error is None and tested.progress is None
    assert tested.result.what == what and tested.result.text and gate.closed == 1


def test_a_test_of_the_target_needs_no_draft(host: ModelHost, gate: Gate) -> None:
    gate.open.set()
    _ended(host.test("target", TOY))
    assert gate.built[0][0].draft == "none"


def test_the_key_reaches_the_builder_and_is_forgotten(host: ModelHost, gate: Gate) -> None:
    gate.open.set()
    tested = _ended(host.test("draft", TOY, Secret("sk-planted-0123456789")))
    assert gate.built[0][1].value == "sk-planted-0123456789" and tested._key is None


def test_a_failure_is_told_without_the_key(host: ModelHost, gate: Gate) -> None:
    gate.failure = UnreachableError("No answer to sk-planted-0123456789.", "Is it running?")
    gate.open.set()
    tested = _ended(host.test("target", TOY, Secret("sk-planted-0123456789")))
    assert tested.result is None
    assert (tested.error.kind, tested.error.remedy) == ("UnreachableError", "Is it running?")
    assert "sk-planted" not in tested.error.message


def test_what_is_written_back_of_the_key_is_struck_out(host: ModelHost, gate: Gate) -> None:
    gate.open.set()
    said = _ended(host.test("target", TOY)).result.text
    secret = said.strip()[:12]
    assert len(secret) >= 8
    shown = _ended(host.test("target", TOY, Secret(secret))).result.text
    assert secret not in shown and "[secret]" in shown


def test_a_bug_is_an_error_of_the_test_and_the_host_lives_on(host: ModelHost, gate: Gate) -> None:
    gate.failure = ZeroDivisionError("by zero")
    gate.open.set()
    assert "bug" in _ended(host.test("target", TOY)).error.remedy
    gate.failure = None
    assert _ended(host.test("target", TOY)).result is not None


def test_a_stopped_test_has_neither_result_nor_error(host: ModelHost, gate: Gate) -> None:
    tested = host.test("target", TOY)
    assert gate.reached.wait(PATIENCE_S)
    tested.stop()
    gate.open.set()
    _ended(tested)
    assert tested.result is None and tested.error is None
    tested.stop()


def test_a_queued_test_ends_at_once_and_waits_its_turn_otherwise(host: ModelHost, gate: Gate) -> None:
    first, second, third = (host.test("target", TOY) for _ in range(3))
    assert gate.reached.wait(PATIENCE_S) and second.phase == "queued"
    assert second.stop(PATIENCE_S) and first.live and third.live
    gate.open.set()
    assert _ended(third).result is not None and second.result is None


def test_a_run_waits_behind_a_test(host: ModelHost, gate: Gate) -> None:
    tested = host.test("target", TOY)
    assert gate.reached.wait(PATIENCE_S)
    run = host.start(TOY, "Hello")
    assert run.queue_position == 1
    gate.open.set()
    _ended(tested)
    _ended(run)


def test_unknown_models_are_refused_at_once(host: ModelHost) -> None:
    with pytest.raises(UnknownModelError):
        host.test("target", Settings(target="nowhere/nothing"))


def test_a_closed_host_tests_nothing() -> None:
    gone = ModelHost(Gate, check)
    gone.close()
    with pytest.raises(RunError):
        gone.test("target", TOY)


def test_closing_the_host_stops_a_test(gate: Gate) -> None:
    host = ModelHost(lambda: gate, check)
    tested: Check = host.test("target", TOY)
    assert gate.reached.wait(PATIENCE_S)
    gate.open.set()
    host.close()
    assert _ended(tested).live is False


def test_nothing_that_a_test_stores_has_the_key(host: ModelHost, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-planted-0123456789"
    findings = Findings(version=key, notes=(f"It answered {key}.",))
    outcome = TrialOutcome("target", key, 1.0, None, key, note=key, findings=findings)
    monkeypatch.setattr("specviz.host.check.try_target", lambda *_: outcome)
    gate.open.set()
    tested = _ended(host.test("target", TOY, Secret(key)))
    assert tested.result is not None and key not in repr(tested.result)
    assert tested.result.findings.notes == ("It answered [secret].",)


def test_progress_is_told_without_the_key() -> None:
    test = Check("target", TOY, Mock(), Secret("sk-planted-0123456789"))
    test.report(Progress("Waiting to ask again: sk-planted-0123456789", 1, 2, "s"))
    assert test.progress == Progress("Waiting to ask again: [secret]", 1, 2, "s")
