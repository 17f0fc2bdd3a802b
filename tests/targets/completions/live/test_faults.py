"""What goes wrong with a real llama-server in the middle of a run."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from specviz.core import session
from specviz.core.connection import Connection, Secret
from specviz.core.errors import PromptError
from specviz.core.events import Metrics
from specviz.core.pair import Pair
from specviz.net.repeating import Backoff
from specviz.targets.completions.target import RemoteTarget
from specviz.targets.completions.wire.transport import HttpCompletions
from tests.llama_server import MODEL, Serving, llama_server
from tests.targets.completions.live.runs import LLAMAS, SKY, Ran, Runs

pytestmark = pytest.mark.smollm


def test_a_server_that_is_killed_ends_the_run_with_a_clear_error(gguf: Path) -> None:
    with llama_server(gguf, Serving(slots=1)) as server:
        pair, settings = Runs(server.url).pair(draft="ngram", raw=True)
        pair.close()
        assert isinstance(pair.target, RemoteTarget)
        told: list[str] = []
        api = HttpCompletions(
            Connection(Secret(server.url), server.url, Secret("")), MODEL,
            on_progress=lambda progress: told.append(progress.what), cancelled=lambda: False,
            backoff=Backoff(0.01, 0.01, 0.0, attempts=2),
        )  # fmt: skip
        target = RemoteTarget(
            pair.target.name, api, pair.target.findings, pair.target.tokenizer, pair.target.capabilities, "auto",
            settings.sampling, settings.acceptance_rule,
        )  # fmt: skip
        events = []
        for event in session.run(Pair(pair.drafter, target), LLAMAS, settings):
            events.append(event)
            if isinstance(event, Metrics):
                server.process.kill()
                server.process.wait()
        api.close()
    error = Ran(tuple(events)).error
    assert error.kind == "UnreachableError" and server.url in error.message and "running" in error.remedy
    assert any("trying again" in what for what in told)


def test_a_busy_server_answers_when_it_is_free(gguf: Path) -> None:
    """Its only slot writes a long text when the run begins, and the requests wait for it."""
    with llama_server(gguf, Serving(slots=1)) as server:
        runs = Runs(server.url)
        pair, _ = runs.pair(draft="ngram")
        pair.close()
        body = json.dumps({"prompt": "Once", "n_predict": 60, "ignore_eos": True, "stream": True}).encode()
        request = urllib.request.Request(f"{server.root}/completion", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as stream:
            stream.readline()
            reading = threading.Thread(target=stream.read)
            reading.start()
            ran = runs.run(SKY, draft="ngram", max_tokens=6)
            reading.join()
    assert ran.ended.total_tokens == 6 and ran.ended.guarantee.kind == "EXACT"


@pytest.fixture(scope="module")
def small(gguf: Path) -> Iterator[Runs]:
    """A server with little room, which speculates by itself."""
    sizes = {"ngram_simple.size_n": 3, "ngram_simple.size_m": 8}
    with llama_server(gguf, Serving(context=256, slots=1, speculation="NGRAM_SIMPLE", sizes=sizes)) as server:
        yield Runs(server.url)


def test_a_prompt_that_does_not_fit_is_refused(small: Runs) -> None:
    with pytest.raises(PromptError, match="the target's context holds 256"):
        small.run("word " * 300, draft="ngram", raw=True)


def test_a_full_context_ends_the_run(small: Runs) -> None:
    ran = small.run("word " * 240, draft="ngram", raw=True, max_tokens=40)
    assert ran.ended.finish_reason == "context_full"


def test_a_context_that_is_smaller_than_it_says_is_an_error_in_its_words(small: Runs) -> None:
    pair, settings = small.pair(draft="ngram", raw=True)
    pair.target.capabilities = replace(pair.target.capabilities, max_context=4096)
    try:
        error = Ran(tuple(session.run(pair, "word " * 300, settings))).error
    finally:
        pair.close()
    assert error.kind == "RefusedError" and "exceeds the available context size (256 tokens)" in error.message


def test_no_probability_is_made_up_for_what_the_server_drafted_itself(small: Runs) -> None:
    ran = small.run(LLAMAS, verification="generating", draft="ngram", raw=True, k=8)
    assert ran.ended.guarantee.kind == "EXACT"
    values = [d.final_logprob for d in ran.decisions]
    assert None in values and all(value is None or value < 0 for value in values)
