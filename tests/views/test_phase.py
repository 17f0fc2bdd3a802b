"""The state of a run in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specviz.core.events import Done
from specviz.core.settings import Settings
from specviz.core.wait import Progress
from specviz.views.phase import Announcer, announcement, phase, wait
from tests.ui.fakes import FakeRun


def _run(prompt: str) -> FakeRun:
    return FakeRun(Settings(), prompt)


def _ended(prompt: str) -> FakeRun:
    run = _run(prompt)
    while not run.done:
        run.drain()
    return run


@pytest.mark.parametrize(
    ("prompt", "kind", "said"),
    [
        ("queued", "waiting", "Waiting for 2 other runs. The models serve one run at a time."),
        ("downloading", "waiting", "Downloading SmolLM2-135M-Instruct: 37.4 MB of 92.9 MB"),
        ("loading", "waiting", "Loading SmolLM2-135M-Instruct"),
        ("baseline", "waiting", "Measuring plain decoding: 12 of 32 tokens"),
        ("talk", "running", "Running: 0 of at most 128 tokens"),
    ],
)
def test_the_phase_of_a_run_that_is_not_finished(prompt: str, kind: str, said: str) -> None:
    now = phase(_run(prompt))
    assert (now.kind, now.words) == (kind, said)


def test_ends_have_their_numbers() -> None:
    assert phase(_ended("talk")).words.startswith("Finished: the model ended its answer. 120 tokens in 40 rounds, ")
    assert phase(_ended("fails")).kind == "failed"
    stopped = _run("endless")
    stopped.drain()
    stopped.stop()
    stopped.drain()
    assert phase(stopped).words == f"Stopped by you after {len(stopped.state.text)} tokens."


def test_names_from_elsewhere_are_quoted() -> None:
    run = _ended("empty: stop_string")
    assert isinstance(run.state.done, Done)
    run.state.done = replace(run.state.done, stop_string="**END**", total_tokens=3, generated_text="a")
    assert "“<**END**>”" in phase(run, "<{}>".format).words
    assert wait(Progress("<b>"), "<{}>".format).words == "<<b>>"


def test_a_screen_reader_hears_the_speed_too() -> None:
    assert announcement(_ended("talk")) == (
        "finished",
        "The run is complete: the model ended its answer. It has 120 tokens in 40 rounds. "
        "Speed-up 2.95 ×, faster than plain decoding.",
    )


def test_a_screen_reader_hears_how_far_a_failed_run_came() -> None:
    assert announcement(_ended("fails"))[1] == "The run ended with an error. It has 20 tokens in 6 rounds."
    assert announcement(_run("queued")) == ("queued", "Waiting: 2 runs are ahead of this one.")


def test_a_paused_run_announces_each_step_and_not_how_far_the_models_are() -> None:
    run = _run("endless")
    run.drain()
    run.pace.pause()
    said = []
    run.drain()
    for _ in range(3):
        run.drain()
        assert "The models are ahead, at round" in phase(run).words
        said.append(announcement(run))
    shown = f"Paused at round {len(run.state.rounds)}."
    assert said == [(shown, shown)] * 3


def test_a_wait_during_a_run_is_announced() -> None:
    assert announcement(_run("retrying")) == (
        "running: Waiting to ask again: 429 Too Many Requests",
        "Waiting to ask again: 429 Too Many Requests: 2 of 8 s",
    )


def test_a_new_phase_is_announced_at_once_and_progress_every_few_seconds() -> None:
    announcer = Announcer()
    told = [announcer.say("running", f"{t} tokens", float(t)) for t in range(13)]
    assert list(dict.fromkeys(told)) == ["0 tokens", "5 tokens", "10 tokens"]
    assert announcer.say("finished", "Finished.", 12.1) == "Finished."
    assert announcer.say("finished", "Finished.", 100.0) == "Finished."
