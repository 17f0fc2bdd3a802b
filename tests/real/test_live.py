"""The contract against a live server; without one these tests are skipped. README.md says how to start one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from specviz.targets.completions.values import Findings
from specviz.targets.completions.wire.transport import HttpCompletions
from tests.real.contract import (
    PROMPTS,
    ModelTokens,
    Reference,
    Scenario,
    check,
    done,
    reference,
    remote,
    requests_of,
    run,
    scenarios,
)
from tests.real.record import STREAM_TOKENS, streamed
from tests.real.server import BASE_URL, MODEL, connected, find, local_target, named

ASKED = named()
pytestmark = pytest.mark.skipif(ASKED is None, reason=f"needs a live server: set {BASE_URL} and {MODEL}")


class Live:
    """The server, what it can do, and the model on this machine that it is compared with."""

    def __init__(self, api: HttpCompletions, model: str, local: str) -> None:
        self._target = local_target(local)
        self.api, self.tokens = api, _tokens(self._target.tokenizer)
        self.findings: Findings = find(api, model, self.tokens)
        self._references: dict[str, Reference] = {}

    def reference(self, prompt: str) -> Reference:
        """The local target's greedy text, computed once."""
        if prompt not in self._references:
            self._references[prompt] = reference(self._target, PROMPTS[prompt])
        return self._references[prompt]


def _tokens(tokenizer: object) -> ModelTokens:
    return tokenizer  # type: ignore[return-value]


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    assert ASKED is not None
    with connected(ASKED.base_url, ASKED.model, ASKED.key) as api:
        yield Live(api, ASKED.model, ASKED.local)


def test_what_the_server_can_do(live: Live) -> None:
    print(live.findings)
    assert live.findings.same_tokens


ALL = [s.name for s in scenarios(("scoring", "prefixes", "generating"))]


@pytest.mark.parametrize("name", ALL)
def test_every_run(live: Live, name: str) -> None:
    scenario = _scenario(name)
    if scenario.way not in live.findings.ways:
        pytest.skip(f"the server cannot do {scenario.way}")
    known = live.reference(scenario.prompt)
    events = run(scenario, remote(live.api, live.findings, live.tokens, scenario), known)
    tie = check(scenario, events, live.findings, known)
    ended = done(events)
    print(f"{ended.total_tokens} tokens, {requests_of(events)} requests, {ended.total_accepted} kept. {tie}")


def test_a_stream_tells_how_many_tokens_came(live: Live) -> None:
    count = streamed(live.api, live.findings, live.tokens, PROMPTS["sky"].ids(live.tokens))
    assert count == STREAM_TOKENS


def _scenario(name: str) -> Scenario:
    return next(s for s in scenarios(("scoring", "prefixes", "generating")) if s.name == name)
