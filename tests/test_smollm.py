"""The real pair, end to end: the text is the target's own, token for token, and equal to mlx-lm's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from specviz.cli import main
from specviz.core.decoding import speculative
from specviz.core.events import Done
from specviz.core.prompt import prepare
from specviz.core.settings import Settings
from specviz.distill.prompts import DOMAINS, held_out
from specviz.engines.tokenizer import ModelTokenizer
from specviz.setup.builder import Builder
from specviz.store import store
from tests.engines.tiny_distilled import write_tiny_distilled

pytestmark = pytest.mark.smollm

PROMPT = "Explain why the sky is blue."
TOKENS = 40


@pytest.fixture(scope="module")
def builder() -> Builder:
    """Keeps the model loaded between tests."""
    return Builder()


def run(builder: Builder, settings: Settings, prompt: str = PROMPT) -> Done:
    pair = builder.build(settings)
    _, ids = prepare(pair.target, settings, prompt)
    *_, last = speculative(pair.drafter, pair.target, ids, settings, seed=settings.seed)
    assert isinstance(last, Done), last
    return last


@cache
def mlx_lms_own() -> tuple[int, ...]:
    """What mlx-lm's plain generation gives: its loader, its attention, its loop; the same weights in float32."""
    from specviz.engines.mlx.blas import use_fast_blas

    use_fast_blas()
    import mlx.core as mx
    from mlx_lm import stream_generate
    from mlx_lm.utils import dequantize_model, load_model, load_tokenizer

    folder = store.pull("smollm2-135m")
    model, _ = load_model(folder)
    model.set_dtype(mx.float32)
    model = dequantize_model(model)
    tokenizer: Any = load_tokenizer(folder)
    ids: Sequence[int] = tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPT}], add_generation_prompt=True, return_dict=False
    )
    return tuple(response.token for response in stream_generate(model, tokenizer, list(ids), max_tokens=TOKENS))


PAIRS = [
    *((draft, k) for draft in ("ngram", "model:smollm2-135m") for k in (1, 4, 16)),
    ("ngram+model:smollm2-135m", 6),
    *((draft, k) for draft in ("model:smollm2-draft", "ngram+model:smollm2-draft") for k in (1, 4, 16)),
    ("none", 4),
]


@pytest.mark.parametrize(("draft", "k"), PAIRS)
def test_greedy_text_is_mlx_lms_for_every_draft_and_k(builder: Builder, draft: str, k: int) -> None:
    ended = run(builder, Settings(draft=draft, k=k, max_tokens=TOKENS, engine="mlx"))
    assert ended.token_ids == mlx_lms_own()


def test_the_shipped_draft_is_the_default_and_is_kept_often(builder: Builder) -> None:
    """On a prompt that is in no training text; `python -m specviz acceptance` measures it on eighty."""
    ended = run(builder, Settings(max_tokens=64))
    assert Settings().draft == "ngram+model:smollm2-draft"
    assert ended.total_accepted / ended.total_tested > 0.3
    assert ended.total_tokens / ended.total_rounds > 1.3


@pytest.mark.parametrize("domain", DOMAINS)
def test_held_out_texts_are_the_targets_own(builder: Builder, domain: str) -> None:
    """All of them at full length: `python -m tests.benchmarks.draft`."""
    prompt = next(p for p in held_out() if p.domain == domain).text
    plain = run(builder, Settings(draft="none", max_tokens=20), prompt)
    assert run(builder, Settings(max_tokens=20), prompt).token_ids == plain.token_ids


def test_what_is_shipped_is_small_and_says_where_it_comes_from() -> None:
    folder = store.pull("smollm2-draft")
    assert sum(p.stat().st_size for p in folder.iterdir()) <= 16_000_000
    found = json.loads((folder / "draft.json").read_text())
    overall = {row["temperature"]: row["acceptance"] for row in found["acceptance"] if row["domain"] == "all"}
    assert set(overall) == {0.0, 0.8} and min(overall.values()) > 0.3
    assert len(found["acceptance"]) == 2 * (len(DOMAINS) + 1)
    card = (folder / "README.md").read_text()
    assert "apache-2.0" in card and "SmolLM2 by Hugging Face" in card and found["training"]["command"] in card


@pytest.mark.parametrize("lookup", ["", "ngram+"])
@pytest.mark.parametrize("min_confidence", [0.0, 0.3])
def test_greedy_text_is_mlx_lms_for_a_draft_with_a_vocabulary_of_its_own(
    builder: Builder, tmp_path_factory: pytest.TempPathFactory, lookup: str, min_confidence: float
) -> None:
    """Random weights: nearly all is refused, and nothing of it may be left in the text."""
    vocabulary = ModelTokenizer(store.pull("smollm2-135m")).vocabulary
    folder = write_tiny_distilled(tmp_path_factory.mktemp("draft"), vocabulary, range(0, 49_152, 3), "smollm2-135m")
    draft = f"{lookup}model:{folder}"
    settings = Settings(draft=draft, k=4, max_tokens=TOKENS, min_confidence=min_confidence, engine="mlx")
    ended = run(builder, settings)
    assert ended.token_ids == mlx_lms_own() and ended.total_drafted > 0


def test_a_draft_that_is_the_target_is_always_kept_by_rejection_sampling_and_not_by_matching(builder: Builder) -> None:
    rates = {}
    for rule in ("probabilistic", "deterministic"):
        settings = Settings(
            draft="model:smollm2-135m",
            temperature=0.8,
            max_tokens=48,
            rule=rule,
        )
        ended = run(builder, settings)
        rates[rule] = ended.total_accepted / ended.total_tested
    print(f"acceptance with drafter = target at temperature 0.8: {rates}")
    assert rates["probabilistic"] == 1.0
    assert rates["deterministic"] < 0.9


def test_copies_are_nearly_all_accepted(builder: Builder) -> None:
    """The second copy of a text is in the prompt already (lmstudio-bug-tracker#461)."""
    sentence = "Speculative decoding lets a small model propose tokens that a large model then checks all at once."
    ended = run(
        builder, Settings(draft="ngram", k=8, max_tokens=40), f"Repeat this sentence exactly, twice: {sentence}"
    )
    assert ended.total_accepted / ended.total_tested > 0.6
    assert ended.total_tokens / ended.total_rounds > 2.5


def test_a_cut_of_the_cache_leaves_no_trace(builder: Builder) -> None:
    """After accepted and refused blocks, K limited by the budget, a second run is the same (mlx-lm PR#1528)."""
    settings = Settings(draft="ngram", k=16, max_tokens=25)
    first, again = run(builder, settings).token_ids, run(builder, settings).token_ids
    assert first == again and len(first) == 25


def test_the_command_line_runs_the_default_pair(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    command = ["generate", "--prompt", PROMPT, "--max-tokens", "12", "--json", "--trace", str(trace)]
    assert main([*command, "--engine", "mlx"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert tuple(data["token_ids"]) == mlx_lms_own()[:12]
    assert (data["engine"], data["place"], data["model_file"]) == ("mlx", "here", "model.safetensors")
    assert data["guarantee"] == "EXACT" and data["baseline_tokens_per_second"] > 0
    assert main(["replay", str(trace), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == data


def test_a_prompt_longer_than_the_context_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--prompt", "word " * 9000]) == 2
    assert "context holds" in capsys.readouterr().err
