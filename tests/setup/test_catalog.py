"""Names, lists and pairs; the real weights of the shipped draft are not needed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specviz.core.decoding import autoregressive, speculative
from specviz.core.errors import PairingError, SpecvizError, StoppedError, UnknownModelError, UnsupportedModelError
from specviz.core.events import Done, DraftToken, RunStarted
from specviz.core.ports import Distant
from specviz.core.settings import Settings
from specviz.core.wait import Wait
from specviz.engines.tokenizer import ModelTokenizer
from specviz.engines.toy import ToyTokenizer
from specviz.setup import catalog
from specviz.setup.builder import Builder
from specviz.setup.catalog import CatalogEntry
from specviz.setup.validation import check
from specviz.store import sources
from tests.engines.tiny import write_tiny_model
from tests.engines.tiny_distilled import write_tiny_distilled
from tests.store.gguf_shelves import in_hub_cache, in_ollama
from tests.toys import asked

TOY = ToyTokenizer()
KEPT = [i for i in range(TOY.end_id + 1) if i % 4]
SHIPPED = "smollm2-draft"
SMOLLM = "local:smollm2-135m"


@pytest.fixture(scope="module")
def toys_draft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_distilled(tmp_path_factory.mktemp("draft"), TOY.vocabulary, KEPT, name="toy")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tinys_draft(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    vocabulary = ModelTokenizer(tiny).vocabulary
    return write_tiny_distilled(tmp_path_factory.mktemp("draft"), vocabulary, range(0, 300, 2), name="tiny")


@pytest.fixture
def no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "WEIGHTS", tmp_path)


@pytest.fixture
def with_weights(toys_draft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped draft is present; a draft of the toy stands in for it, since these tests do not load it."""
    (tmp_path / SHIPPED).symlink_to(toys_draft)
    monkeypatch.setattr(sources, "WEIGHTS", tmp_path)


def choices(target: str) -> dict[str, CatalogEntry]:
    return {choice.name: choice for choice in catalog.drafts(target)}


def refused(settings: Settings, kind: type[SpecvizError], said: str) -> SpecvizError:
    with pytest.raises(kind, match=said) as caught:
        check(settings)
    assert caught.value.remedy
    return caught.value


# Lists.


def test_the_drafts_of_the_default_target_begin_with_its_own(with_weights: None) -> None:
    listed = catalog.drafts(SMOLLM)
    assert [c.name for c in listed[:3]] == [f"ngram+model:{SHIPPED}", f"model:{SHIPPED}", "ngram"]
    assert [c.title for c in listed[:2]] == ["n-gram lookup + SmolLM2 draft", "SmolLM2 draft, distilled"]
    assert all(c.available and not c.reason for c in listed[:2])


@pytest.mark.parametrize("target", ["toy", "local:llama-3.2-1b", "local:/some/folder", "local:org/name"])
def test_another_target_is_told_why_not(with_weights: None, target: str) -> None:
    for name in (f"ngram+model:{SHIPPED}", f"model:{SHIPPED}"):
        choice = choices(target)[name]
        assert not choice.available and choice.reason == "It was distilled for SmolLM2-135M-Instruct only."


def test_missing_weights_are_the_reason(no_weights: None) -> None:
    for name in (f"ngram+model:{SHIPPED}", f"model:{SHIPPED}"):
        choice = choices(SMOLLM)[name]
        assert not choice.available and "lacks its weights" in choice.reason


def test_a_distilled_draft_is_no_target(with_weights: None) -> None:
    assert not any(SHIPPED in c.name for c in catalog.targets())


# Models of other programs.


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which Ollama and the hub's client have models."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "ollama"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    in_ollama(tmp_path / "ollama", "library/llama3.2", "3b", general_size_label="3B")
    in_hub_cache(tmp_path / "hub", "org/Some-GGUF", "Some-Q8_0.gguf", pre="qwen2")
    in_hub_cache(tmp_path / "hub", "Qwen/Qwen2.5-0.5B-Instruct-GGUF", "qwen2.5-0.5b-instruct-q8_0.gguf", pre="qwen2")
    return tmp_path


def test_models_of_other_programs_are_targets_and_drafts(others: Path) -> None:
    targets = {choice.name: choice for choice in catalog.targets({})}
    ollamas = targets["local:ollama/llama3.2:3b"]
    assert ollamas.available and ollamas.title == "ollama/llama3.2:3b"
    assert ollamas.detail == "3B, Q4_K_M, 0 MB on the disk, from Ollama."
    assert targets["local:org/Some-GGUF:Q8_0"].detail == "Q8_0, 0 MB on the disk, from the Hugging Face cache."
    assert not any("Qwen/Qwen2.5-0.5B" in name for name in targets), "it has a short name"


@pytest.mark.parametrize(
    ("target", "draft", "reason"),
    [
        ("local:llama-3.2-1b", "model:ollama/llama3.2:3b", ""),
        (
            "local:llama-3.2-1b",
            "model:org/Some-GGUF:Q8_0",
            "Its vocabulary is not the target's (qwen2, not llama-bpe).",
        ),
        ("local:ollama/llama3.2:3b", "model:llama-3.2-1b", ""),
        ("local:ollama/llama3.2:3b", "model:qwen2.5-3b", "Its vocabulary is not the target's (qwen2, not llama-bpe)."),
        ("local:ollama/llama3.2:3b", "model:ollama/llama3.2:3b", ""),
        ("local:Qwen/Qwen2.5-0.5B-Instruct-GGUF:q8_0", "model:llama-3.2-1b", "the target's (llama3, not qwen2.5)."),
        ("local:ollama/gone", "model:ollama/llama3.2:3b", ""),
        ("toy", "model:ollama/llama3.2:3b", "Its vocabulary is not the toy's."),
    ],
)
def test_drafts_with_other_tokens_say_so(others: Path, target: str, draft: str, reason: str) -> None:
    choice = choices(target)[draft]
    known = draft.count("/") == 0
    assert choice.reason.endswith(reason) if reason else (choice.available or known)
    assert choice.available is (not reason and not known)


def test_names_of_other_programs_models_are_checked(others: Path) -> None:
    check(Settings(target="local:ollama/llama3.2:3b", draft="ngram+model:ollama/llama3.2:3b"))
    error = refused(Settings(target="local:ollama/llama4", draft="ngram"), UnknownModelError, "Ollama has no model")
    assert "llama3.2:3b" in error.remedy
    two = Settings(target="local:Qwen/Qwen2.5-0.5B-Instruct-GGUF:q8_0", draft="model:llama-3.2-1b")
    refused(two, PairingError, "llama3 and qwen2.5")


# Which names are accepted.


@pytest.mark.parametrize("draft", ["ngram+none", "ngram+ngram", "ngram+", "ngram+auto", "ngram+ngram+toy", "nothing"])
def test_unknown_drafts(draft: str) -> None:
    error = refused(Settings(target="toy", draft=draft), UnknownModelError, "Unknown draft")
    assert draft in error.message and "ngram+" in error.remedy


@pytest.mark.parametrize("lookup", ["", "ngram+"])
def test_the_toy_draft_serves_the_toy_alone(lookup: str) -> None:
    check(Settings(target="toy", draft=f"{lookup}toy"))
    refused(Settings(target=SMOLLM, draft=f"{lookup}toy"), PairingError, "toy pair")
    refused(Settings(target="toy", draft=f"{lookup}model:smollm2-135m"), PairingError, "toy pair")


@pytest.mark.parametrize("lookup", ["", "ngram+"])
def test_the_shipped_draft(with_weights: None, lookup: str) -> None:
    draft = f"{lookup}model:{SHIPPED}"
    check(Settings(target=SMOLLM, draft=draft))
    refused(Settings(target="local:llama-3.2-1b", draft=draft), PairingError, "smollm2 and llama3")


@pytest.mark.parametrize("lookup", ["", "ngram+"])
def test_the_shipped_draft_without_its_weights(no_weights: None, lookup: str) -> None:
    refused(Settings(target=SMOLLM, draft=f"{lookup}model:{SHIPPED}"), UnsupportedModelError, "this copy lacks")


def test_a_distilled_draft_as_target_is_refused(toys_draft: Path, no_weights: None) -> None:
    for name in (SHIPPED, str(toys_draft)):
        error = refused(Settings(target=f"local:{name}", draft="ngram"), UnsupportedModelError, "cannot be a target")
        assert f"model:{name}" in error.remedy


@pytest.mark.parametrize("lookup", ["", "ngram+"])
def test_a_folder_that_was_distilled_for_another_target(tinys_draft: Path, tiny: Path, lookup: str) -> None:
    draft = f"{lookup}model:{tinys_draft}"
    check(Settings(target=f"local:{tiny}", draft=draft))
    refused(Settings(target="toy", draft=draft), PairingError, "was distilled for tiny")


def test_a_damaged_folder_is_refused_before_any_work(toys_draft: Path, tmp_path: Path) -> None:
    bad = Path(shutil.copytree(toys_draft, tmp_path / "bad"))
    (bad / "vocabulary.safetensors").write_bytes(b"cut")
    refused(Settings(target="toy", draft=f"ngram+model:{bad}"), UnsupportedModelError, "vocabulary.safetensors")


# Pairs.


def run(builder: Builder, settings: Settings, prompt: str = "the draft reads and writes the draft") -> list[object]:
    pair = builder.build(settings)
    ids = pair.target.tokenizer.encode(prompt)
    return list(speculative(pair.drafter, pair.target, ids, settings, seed=0))


def plain(builder: Builder, settings: Settings, prompt: str = "the draft reads and writes the draft") -> Done:
    target = builder.build(settings).target
    *_, last = autoregressive(target, target.tokenizer.encode(prompt), settings, seed=0)
    assert isinstance(last, Done)
    return last


def done(events: list[object]) -> Done:
    assert isinstance(events[-1], Done), events[-1]
    return events[-1]


@pytest.fixture(scope="module")
def builder() -> Iterator[Builder]:
    yield Builder()


@pytest.mark.parametrize("lookup", ["", "ngram+"])
@pytest.mark.parametrize("k", [1, 4, 16])
@pytest.mark.parametrize("min_confidence", [0.0, 0.3])
def test_greedy_text_is_the_toys_own(
    builder: Builder, toys_draft: Path, lookup: str, k: int, min_confidence: float
) -> None:
    name = f"{lookup}model:{toys_draft}"
    settings = Settings(target="toy", draft=name, k=k, max_tokens=50, min_confidence=min_confidence)
    events = run(builder, settings)
    assert done(events).token_ids == plain(builder, settings).token_ids
    started, *_ = events
    assert isinstance(started, RunStarted) and started.draft == name
    drafted = {e.token_id for e in events if isinstance(e, DraftToken)}
    assert drafted and drafted <= {*KEPT, *TOY.encode("the draft reads and writes the draft"), *done(events).token_ids}
    assert lookup or drafted <= set(KEPT)


@pytest.mark.parametrize("draft", ["model:{}", "ngram+model:{}"])
@pytest.mark.parametrize("k", [1, 5])
def test_greedy_text_is_a_models_own(builder: Builder, tiny: Path, tinys_draft: Path, draft: str, k: int) -> None:
    settings = Settings(target=f"local:{tiny}", draft=draft.format(tinys_draft), k=k, max_tokens=24, raw=True)
    events = run(builder, settings, "the sky is blue because")
    assert done(events).token_ids == plain(builder, settings, "the sky is blue because").token_ids
    assert all(e.logprob is None or e.token_id % 2 == 0 for e in events if isinstance(e, DraftToken))


@pytest.mark.parametrize("draft", ["ngram+model:{}", "model:{}"])
def test_a_model_before_another_of_its_size_is_let_go(toys_draft: Path, draft: str) -> None:
    builder = Builder()
    settings = Settings(target="toy", draft=draft.format(toys_draft))
    builder.build(settings)
    loaded = dict(builder._distilled)
    assert [name for name, _ in loaded] == [str(toys_draft)]
    builder.build(settings)
    assert builder._distilled == loaded, "it is kept for the next run"
    builder.build(Settings(target="toy", draft="toy"))
    assert builder._distilled == {}


def test_a_full_model_is_a_draft_behind_the_lookup_too(builder: Builder, tiny: Path) -> None:
    settings = Settings(target=f"local:{tiny}", draft=f"ngram+model:{tiny}", max_tokens=24, temperature=0.7)
    ended = done(run(builder, settings, "the sky is blue because"))
    assert ended.total_accepted > 0 and ended.total_accepted == ended.total_tested, "it is the target itself"


def test_a_target_with_other_tokens_is_refused_when_it_is_known(
    builder: Builder, tinys_draft: Path, tmp_path: Path
) -> None:
    other = write_tiny_model(tmp_path / "other")
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    a, b = "A", "B"
    vocabulary[a], vocabulary[b] = vocabulary[b], vocabulary[a]
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(PairingError, match="fingerprint"):
        builder.build(Settings(target=f"local:{other}", draft=f"model:{tinys_draft}"))


def test_the_shortest_match_in_front_of_a_model_is_two(builder: Builder) -> None:
    found = []
    for low, high in ((1, 4), (1, 1), (5, 6)):
        pair = builder.build(Settings(target="toy", draft="ngram+toy", ngram_min=low, ngram_max=high))
        lookup = pair.drafter._lookup  # type: ignore[attr-defined]
        found.append((lookup.shortest, lookup.longest))
    assert found == [(2, 4), (2, 2), (5, 6)]


def test_min_confidence_reaches_every_model_draft(builder: Builder) -> None:
    lengths = {}
    for draft in ("toy", "ngram+toy", "ngram"):
        sizes = []
        for bar in (0.0, 0.9):
            ended = done(run(builder, Settings(target="toy", draft=draft, k=8, max_tokens=40, min_confidence=bar)))
            sizes.append(ended.total_drafted / ended.total_rounds)
        lengths[draft] = sizes
    assert lengths["toy"][1] < 2 < lengths["toy"][0] and lengths["ngram+toy"][1] < 2 < lengths["ngram+toy"][0]
    assert lengths["ngram"][0] == lengths["ngram"][1], "n-gram lookup alone has no estimate"


def test_a_network_goes_in_front_of_the_target_and_the_models_stay_loaded(builder: Builder, tiny: Path) -> None:
    near = Settings(target=f"local:{tiny}", draft=f"model:{tiny}", seed=5)
    assert not isinstance(builder.build(near).target, Distant)
    loaded = dict(builder._loaded)
    far = replace(near, simulated_rtt_ms=80.0, simulated_jitter_ms=20.0)
    pair = builder.build(far, Wait(cancelled=lambda: True))
    assert isinstance(pair.target, Distant) and not isinstance(pair.target.near, Distant)
    assert pair.target.name == near.target
    limits = pair.target.capabilities
    assert (limits.simulated_rtt_ms, limits.simulated_jitter_ms) == (80.0, 20.0)
    assert builder._loaded == loaded
    with pytest.raises(StoppedError):
        pair.target.verify(asked([0], [], far.sampling, far.acceptance_rule, 0))


def test_the_delays_have_the_seed_of_the_run(builder: Builder) -> None:
    drawn = []
    for seed in (5, 5, 6):
        target = builder.build(Settings(target="toy", seed=seed, simulated_rtt_ms=2, simulated_jitter_ms=2)).target
        drawn.append(target._delays.random())  # type: ignore[attr-defined]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] != np.random.default_rng(5).random(), "the sampler's stream is another one"
