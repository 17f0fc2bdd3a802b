"""Completions targets by name: which can be chosen, which are refused, and a pair with a toy server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specviz.core.connection import Secret
from specviz.core.decoding import autoregressive, speculative
from specviz.core.errors import (
    IncapableError,
    PairingError,
    RefusedError,
    SettingsError,
    SpecvizError,
    StoppedError,
    UnknownModelError,
    UnreachableError,
)
from specviz.core.events import Done, RunStarted
from specviz.core.pair import Pair
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait
from specviz.engines.tokenizer import ModelTokenizer
from specviz.engines.toy import ToyScorer, ToyTokenizer
from specviz.setup import catalog
from specviz.setup.builder import Builder, probe_target
from specviz.setup.catalog import CatalogEntry
from specviz.setup.completions import CONTEXT_UNKNOWN
from specviz.setup.validation import check
from tests.engines.tiny import write_tiny_model, write_tiny_tokenizer
from tests.engines.tiny_distilled import write_tiny_distilled
from tests.targets.completions.toyserver import ToyServer, serve

TOY = ToyTokenizer()
SOMEWHERE = {"TARGET_BASE_URL": "http://127.0.0.1:9/v1"}
#: The toy's continuation encodes to the same tokens that were drawn, so a server that takes text gets the same ids.
PROMPT = " fast two"


@pytest.fixture(scope="module")
def toys_draft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = [i for i in range(TOY.end_id + 1) if i % 4]
    return write_tiny_distilled(tmp_path_factory.mktemp("draft"), TOY.vocabulary, kept, name="toy")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"))


def toy_server(dialect: str = "vllm", **options: Any) -> ToyServer:
    return ToyServer(ToyScorer(TOY), dialect, TOY, **options)


@pytest.fixture
def served() -> Iterator[tuple[ToyServer, str]]:
    toy = toy_server()
    with serve(toy) as url:
        yield toy, url


def remote(draft: str = "ngram", **options: Any) -> Settings:
    return replace(Settings(target="openai:toy", draft=draft, tokenizer="toy", max_tokens=24), **options)


def run(pair: Pair, settings: Settings) -> list[Any]:
    try:
        ids = pair.target.tokenizer.encode(PROMPT)
        return list(speculative(pair.drafter, pair.target, ids, settings))
    finally:
        pair.close()


def greedy_ids(tokens: int) -> tuple[int, ...]:
    settings = Settings(target="toy", draft="none", max_tokens=tokens)
    target = Builder().build(settings).target
    *_, last = autoregressive(target, TOY.encode(PROMPT), settings, seed=0)
    assert isinstance(last, Done)
    return last.token_ids


# Listed targets and drafts.


def choice(variables: dict[str, str]) -> CatalogEntry | None:
    found = [c for c in catalog.targets(variables) if c.name.startswith("openai")]
    assert len(found) < 2
    return found[0] if found else None


def test_no_server_is_listed_where_none_is_named() -> None:
    assert choice({}) is None and choice({"TARGET_MODEL": "m"}) is None and choice({"TARGET_BASE_URL": " "}) is None


def test_the_server_that_the_environment_names() -> None:
    found = choice({"TARGET_BASE_URL": "http://me:pass-word@127.0.0.1:8000/v1?token=abc", "TARGET_MODEL": "org/m"})
    assert found and (found.name, found.title) == ("openai:org/m", "org/m at 127.0.0.1:8000")
    assert found.available and not found.reason and "pass-word" not in repr(found) and "abc" not in repr(found)


def test_a_cerebras_key_names_its_server() -> None:
    found = choice({"CEREBRAS_API_KEY": "csk-planted", "CEREBRAS_TARGET_MODEL": "gpt-oss-120b"})
    assert found and (found.name, found.title) == ("openai:gpt-oss-120b", "gpt-oss-120b at api.cerebras.ai")
    assert "planted" not in repr(found)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"TARGET_BASE_URL": "http://host/v1"}, "TARGET_MODEL"),
        ({"TARGET_BASE_URL": "host:pass-word", "TARGET_MODEL": "m"}, "not an http:// or https://"),
        ({"TARGET_BASE_URL": "http://host/v1", "TARGET_MODEL": "m", "SPECULATION_K": "many"}, "SPECULATION_K"),
    ],
)
def test_what_is_missing_is_the_reason(variables: dict[str, str], said: str) -> None:
    found = choice(variables)
    assert found and not found.available and said in found.reason and "pass-word" not in repr(found)


def drafts(target: str) -> dict[str, CatalogEntry]:
    return {c.name: c for c in catalog.drafts(target)}


def test_drafts_of_a_server_whose_model_is_not_known() -> None:
    listed = drafts("openai:default_model")
    assert not listed["toy"].available
    for name in ("model:smollm2-draft", "ngram+model:smollm2-draft"):
        assert listed[name].available and listed[name].reason == "For a server that runs SmolLM2-135M-Instruct."
    assert "vocabulary" not in listed["model:llama-3.2-1b"].reason


def test_drafts_of_a_server_whose_model_is_known() -> None:
    assert not drafts("openai:smollm2-135m")["model:smollm2-draft"].reason
    assert "llama3, not smollm2" in drafts("openai:smollm2-135m")["model:llama-3.2-1b"].reason
    assert "for SmolLM2-135M-Instruct only" in drafts("openai:llama-3.2-1b")["model:smollm2-draft"].reason


# What is refused before any work.


def refused(settings: Settings, kind: type[SpecvizError], said: str, variables: Any = SOMEWHERE) -> SpecvizError:
    with pytest.raises(kind, match=said) as caught:
        check(settings, variables)
    assert caught.value.remedy
    return caught.value


def test_names_that_lack_something() -> None:
    check(remote(), SOMEWHERE)
    check(remote(base_url="http://127.0.0.1:9/v1"), {})
    refused(remote(), SettingsError, "has no address", {})
    for target in ("openai", "openai:"):
        refused(remote(target=target), UnknownModelError, "needs the name of a model")
    refused(remote("odd:name"), UnknownModelError, "Unknown draft")
    refused(remote(tokenizer="no such thing"), UnknownModelError, "no such thing")


@pytest.mark.parametrize("lookup", ["", "ngram+"])
def test_the_toy_draft_needs_the_toys_tokens(lookup: str, tiny: Path, toys_draft: Path) -> None:
    check(remote(f"{lookup}toy"), SOMEWHERE)
    for tokenizer in ("", str(tiny)):
        refused(remote(f"{lookup}toy", tokenizer=tokenizer), PairingError, "toy pair")
    refused(remote(f"{lookup}model:{tiny}"), PairingError, "toy pair")
    check(remote(f"{lookup}model:{toys_draft}"), SOMEWHERE)


def test_two_families_are_refused() -> None:
    draft = "model:llama-3.2-1b"
    for settings in (
        remote(draft, tokenizer="smollm2-135m"),
        remote(draft, target="openai:smollm2-135m", tokenizer=""),
    ):
        refused(settings, PairingError, "llama3 and smollm2")
    check(remote(draft, target="openai:llama-3.3-70b", tokenizer=""), SOMEWHERE)


# Pairs.


@pytest.mark.parametrize("dialect", ["vllm", "sglang", "llamacpp", "mlx", "generates"])
@pytest.mark.parametrize("draft", ["ngram", "toy"])
def test_greedy_text_is_the_toys_own_whatever_the_server_can_do(dialect: str, draft: str) -> None:
    settings = remote(draft)
    with serve(toy_server(dialect)) as url:
        events = run(Builder({"TARGET_BASE_URL": url}).build(settings), settings)
    assert isinstance(events[-1], Done), events[-1]
    assert events[-1].token_ids == greedy_ids(24) and events[-1].guarantee.kind == "EXACT"
    assert isinstance(events[0], RunStarted) and events[0].place == "completions"
    way = {"vllm": "scoring", "sglang": "scoring", "llamacpp": "prefixes"}.get(dialect, "generating")
    assert events[0].way == way


@pytest.mark.parametrize("draft", ["model:{}", "ngram+model:{}"])
def test_a_distilled_draft_with_a_server(draft: str, toys_draft: Path, served: tuple[ToyServer, str]) -> None:
    for tokenizer in ("toy", ""):
        settings = remote(draft.format(toys_draft), tokenizer=tokenizer)
        events = run(Builder({"TARGET_BASE_URL": served[1]}).build(settings), settings)
        assert isinstance(events[-1], Done) and events[-1].token_ids == greedy_ids(24)


def test_limits_come_from_the_server_and_the_tokenizer(served: tuple[ToyServer, str]) -> None:
    pair = Builder({"TARGET_BASE_URL": served[1]}).build(remote())
    limits = pair.target.capabilities
    assert (limits.vocab_size, limits.max_context, limits.stop_ids) == (TOY.vocab_size, 4096, TOY.stop_ids)
    assert pair.where == served[1]
    pair.close()


def test_a_context_that_is_not_told_is_assumed_and_said() -> None:
    with serve(toy_server("generates", max_context=99)) as url:
        builder = Builder({"TARGET_BASE_URL": url})
        pair = builder.build(remote())
        assert pair.target.capabilities.max_context == CONTEXT_UNKNOWN
        pair.close()
        findings, _, _ = probe_target(remote(), {"TARGET_BASE_URL": url})
    assert any("4,096 tokens are assumed" in note for note in findings.notes)


def test_a_server_is_tried_out_once(served: tuple[ToyServer, str]) -> None:
    toy, url = served
    builder = Builder({"TARGET_BASE_URL": url})
    seen: list[Progress] = []
    builder.build(remote(), Wait(seen.append)).close()
    assert toy.requests and f"Testing what {url} can do" in [p.what for p in seen]
    asked = len(toy.requests)
    builder.build(remote("toy", temperature=1.0)).close()
    assert len(toy.requests) == asked
    probe_target(remote(), {"TARGET_BASE_URL": url})
    assert len(toy.requests) > asked


def test_what_the_doctor_is_told(served: tuple[ToyServer, str]) -> None:
    hidden = served[1].replace("http://", "http://me:pass-word@") + "?token=abc"
    findings, tokens, shown = probe_target(remote(), {"TARGET_BASE_URL": hidden})
    assert shown == served[1] and tokens.name == "toy" and tokens.own
    assert findings.engine == "vllm" and findings.ways[0] == "scoring" and findings.same_tokens
    with pytest.raises(UnknownModelError, match="not a remote target"):
        probe_target(Settings(target="toy", draft="ngram"), {})


@pytest.fixture
def closings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records which connections were opened and closed."""
    from specviz.targets.completions.wire.transport import HttpCompletions

    done: list[str] = []
    opened, closed = HttpCompletions.__init__, HttpCompletions.close

    def init(self: Any, *arguments: Any, **options: Any) -> None:
        done.append("opened")
        opened(self, *arguments, **options)

    def close(self: Any) -> None:
        done.append("closed")
        closed(self)

    monkeypatch.setattr(HttpCompletions, "__init__", init)
    monkeypatch.setattr(HttpCompletions, "close", close)
    return done


def test_a_key_of_the_run_goes_before_the_environments(closings: list[str]) -> None:
    with serve(toy_server(key="sk-right")) as url:
        builder = Builder({"TARGET_BASE_URL": url, "TARGET_API_KEY": "sk-wrong"})
        with pytest.raises(RefusedError, match="401") as caught:
            builder.build(remote())
        assert "sk-wrong" not in str(caught.value) and closings == ["opened", "closed"]
        builder.build(remote(), key=Secret("sk-right")).close()
        assert closings == ["opened", "closed"] * 2
        Builder({"TARGET_BASE_URL": url, "TARGET_API_KEY": "sk-right"}).build(remote()).close()


def test_what_fails_behind_the_connection_closes_it(
    closings: list[str], served: tuple[ToyServer, str], tiny: Path, tmp_path: Path
) -> None:
    builder = Builder({"TARGET_BASE_URL": served[1]})
    with pytest.raises(IncapableError):
        builder.build(remote(verification="scoring", temperature=0.7, rule="deterministic"))
    assert closings == ["opened", "closed"]
    write_tiny_tokenizer(tmp_path, size=280)
    with pytest.raises(PairingError, match="Draft and target"):
        builder.build(remote(f"model:{tiny}", tokenizer=str(tmp_path)))
    assert closings == ["opened", "closed"] * 2


def test_stopping_ends_it(closings: list[str], served: tuple[ToyServer, str]) -> None:
    with pytest.raises(StoppedError):
        Builder({"TARGET_BASE_URL": served[1]}).build(remote(), Wait(cancelled=lambda: True))
    assert closings == ["opened", "closed"] and not served[0].requests


def test_nobody_there() -> None:
    with pytest.raises(UnreachableError, match="127.0.0.1:9") as caught:
        Builder(SOMEWHERE).build(remote())
    assert caught.value.remedy


# Other tokens than the server's.


def test_a_drafts_tokenizer_that_is_not_the_servers(tiny: Path, served: tuple[ToyServer, str]) -> None:
    builder = Builder({"TARGET_BASE_URL": served[1]})
    settings = remote(f"model:{tiny}", tokenizer="", max_tokens=8, k=2)
    for way in ("scoring", "prefixes"):
        with pytest.raises(PairingError, match="not those of the draft's tokenizer") as caught:
            builder.build(remote(f"model:{tiny}", tokenizer="", verification=way))
        assert "--tokenizer" in caught.value.remedy
    pair = builder.build(settings)
    assert pair.target.capabilities.way == "generating"
    assert pair.target.capabilities.vocab_size == ModelTokenizer(tiny).vocab_size
    pair.close()


def test_the_catalog_needs_no_http_library() -> None:
    code = (
        "import sys, specviz.setup.catalog, specviz.setup.validation, specviz.cli\n"
        "from specviz.core.settings import Settings\n"
        "specviz.setup.catalog.targets({'TARGET_BASE_URL': 'http://127.0.0.1:9/v1', 'TARGET_MODEL': 'm'})\n"
        "remote = Settings(target='openai:m', base_url='http://127.0.0.1:9/v1', draft='ngram')\n"
        "specviz.setup.validation.check(remote, {})\n"
        "heavy = {'openai', 'tenacity', 'mlx', 'transformers'} & {m.split('.')[0] for m in sys.modules}\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
