"""Every way against what real servers answered: recorded by `tests.real.record`, played on the loopback.

A request that was never recorded fails its test: something asks differently now, and tests/real/README.md says how to
record again. Needs no model and no server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from specviz.core import decoding
from specviz.core.events import Way
from specviz.core.settings import Rule, Sampling
from specviz.targets.completions.choice import choose
from specviz.targets.completions.values import Engine
from specviz.targets.completions.wire.transport import HttpCompletions
from tests.real.contract import SEED, Scenario, check, done, numerical_tie, remote, requests_of, run, scenarios
from tests.real.record import STREAM_TOKENS, streamed
from tests.real.recording import Recording, StoredTokenizer, read
from tests.real.server import connected, find
from tests.real.wire import AGAIN, Player

WAYS: dict[str, tuple[Way, ...]] = {
    "vllm": ("scoring", "prefixes", "generating"),
    "llama-server": ("prefixes", "generating"),
    "mlx-lm": ("generating",),
}
RUNS = [(server, scenario) for server, ways in WAYS.items() for scenario in scenarios(ways)]


class OneGenerator:
    """All draws of a run from one generator, in the order in which they are made."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(SEED)

    def draft(self, candidate: int = 0) -> np.random.Generator:
        return self._rng

    def target(self) -> np.random.Generator:
        return self._rng


@contextmanager
def played(recording: Recording, part: str) -> Iterator[HttpCompletions]:
    """The recorded server, which must be asked all that it was asked then and nothing else."""
    player = Player(recording.part(part))
    with player.serve() as base_url, connected(base_url, recording.model) as api:
        yield api
    assert not player.missing, f"{recording.server}, {part}: not recorded: {player.missing[0]}. {AGAIN}"
    assert not player.left, f"{recording.server}, {part}: {player.left} answers were not asked for. {AGAIN}"


@pytest.mark.parametrize("server", WAYS)
def test_the_probe_finds_what_it_found(server: str) -> None:
    recording = read(server)
    with played(recording, "probe") as api:
        found = find(api, recording.model, StoredTokenizer(recording.tokenizer))
    assert found.ways == WAYS[server] and found.same_tokens
    # Text is all that mlx_lm.server takes.
    assert found.ids_in is (server != "mlx-lm") and found.ids_out
    engines: dict[str, Engine] = {"vllm": "vllm", "llama-server": "llamacpp", "mlx-lm": "mlx"}
    assert found.engine == engines[server]
    if server == "vllm":
        assert (found.top, found.after_temperature) == (20, False)
    if server == "llama-server":
        assert found.batch and not found.scores


@pytest.mark.parametrize(("server", "scenario"), RUNS, ids=[f"{server} {s.name}" for server, s in RUNS])
def test_a_run_is_what_it_was(server: str, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = read(server)
    if not recording.streams:
        noise = OneGenerator()
        monkeypatch.setattr(decoding, "Noise", lambda seed, number: noise)
    tokens, then = StoredTokenizer(recording.tokenizer), recording.outcomes[scenario.name]
    known = recording.references[scenario.prompt]
    with played(recording, scenario.name) as api:
        events = run(scenario, remote(api, recording.findings, tokens, scenario), known)
    tie = check(scenario, events, recording.findings, known)
    if tie:
        print(tie)
    ended = done(events)
    assert (ended.token_ids, ended.finish_reason) == (then.token_ids, then.finish_reason)
    assert (ended.guarantee.kind, requests_of(events)) == (then.guarantee, then.requests)


@pytest.mark.parametrize("server", WAYS)
def test_a_stream_tells_how_many_tokens_came(server: str) -> None:
    recording = read(server)
    with played(recording, "stream") as api:
        tokens, prompt = StoredTokenizer(recording.tokenizer), recording.references["sky"].prompt_ids
        count = streamed(api, recording.findings, tokens, prompt)
    assert count == STREAM_TOKENS


@pytest.mark.parametrize(
    ("server", "temperature", "way"),
    [
        ("vllm", 0.0, "scoring"),
        ("vllm", 1.0, "scoring"),
        ("vllm", 0.7, "prefixes"),
        ("llama-server", 0.7, "prefixes"),
        ("mlx-lm", 0.7, "generating"),
    ],
)
def test_the_best_exact_way_is_chosen(server: str, temperature: float, way: Way) -> None:
    recording = read(server)
    chosen, guarantee = choose(recording.findings, "auto", Sampling(temperature), Rule(), 49152)
    assert (chosen, guarantee.kind) == (way, "EXACT")


def test_no_recording_holds_a_path_or_a_host() -> None:
    for server in WAYS:
        recording = read(server)
        for exchange in recording.exchanges:
            text = f"{exchange.sent} {exchange.answer}"
            assert "127.0.0.1" not in text and "localhost" not in text and "/home/" not in text
            assert "Authorization" not in text and ".gguf" not in text and "Linux-" not in text


def test_a_difference_is_told_from_a_tie() -> None:
    known = read("vllm").references["sky"]
    gaps = [one - other for one, other in zip(known.first, known.second, strict=True)]
    clear = gaps.index(max(gaps))
    other = (*known.token_ids[:clear], known.second_ids[clear], *known.token_ids[clear + 1 :])
    with pytest.raises(AssertionError, match=f"part at token {clear}"):
        numerical_tie(other, known)
