"""The contract against a live server; without one these tests are skipped. README.md says how to start one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from specviz.targets.remote.transport import HttpCompletions
from specviz.targets.remote.values import Findings
from tests.real.contract import ModelTokens, Reference, Scenario, check, done, remote, requests_of, run, scenarios
from tests.real.record import STREAM_TOKENS, streamed
from tests.real.server import BASE_URL, MODEL, connected, find, local_target, named, references

ASKED = named()
pytestmark = pytest.mark.skipif(ASKED is None, reason=f"needs a live server: set {BASE_URL} and {MODEL}")


class Live:
    """The server, what it can do, and the model on this machine that it is compared with."""

    def __init__(self, api: HttpCompletions, model: str, local: str) -> None:
        target = local_target(local)
        self.api, self.tokens, self.references = api, _tokens(target.tokenizer), references(target)
        self.findings: Findings = find(api, model, self.tokens)


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
    events = run(scenario, remote(live.api, live.findings, live.tokens, scenario), live.references)
    tie = check(scenario, events, live.findings, _known(live, scenario))
    ended = done(events)
    print(f"{ended.total_tokens} tokens, {requests_of(events)} requests, {ended.total_accepted} kept. {tie}")


def test_a_stream_tells_how_many_tokens_came(live: Live) -> None:
    count = streamed(live.api, live.findings, live.tokens, live.references["sky"])
    assert count == STREAM_TOKENS


def _scenario(name: str) -> Scenario:
    return next(s for s in scenarios(("scoring", "prefixes", "generating")) if s.name == name)


def _known(live: Live, scenario: Scenario) -> Reference:
    return live.references[scenario.prompt]
