"""A real server, end to end: what it writes through specviz is what the same weights write in this process."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence

import pytest

from specviz.cli import main
from specviz.core.decoding import autoregressive, speculative
from specviz.core.events import Done, RunStarted
from specviz.core.prompt import prepare
from specviz.core.settings import Settings
from specviz.setup import loading
from specviz.setup.builder import Builder
from tests.mlx_server import mlx_server

pytestmark = pytest.mark.smollm

PROMPT = "Explain why the sky is blue."
TOKENS = 12
MODEL, TOKENIZER = "openai:default_model", "smollm2-135m"
#: Natural log-probabilities that lie closer than this may change places between two ways to add up the same products.
TIE = 0.02


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with mlx_server() as url:
        yield url


@pytest.fixture(scope="module")
def builder(server: str) -> Builder:
    return Builder({"TARGET_BASE_URL": server})


@pytest.fixture(scope="module")
def own(builder: Builder) -> tuple[list[int], tuple[int, ...]]:
    """The prompt's ids, and what the local target writes behind them."""
    settings = Settings(draft="none", max_tokens=TOKENS)
    target = builder.build(settings).target
    _, ids = prepare(target, settings, PROMPT)
    *_, last = autoregressive(target, ids, settings, seed=0)
    assert isinstance(last, Done)
    return ids, last.token_ids


def check_equal(written: Sequence[int], own: tuple[list[int], tuple[int, ...]]) -> None:
    """Equal, or a numerical tie where they part: the gap is said then."""
    prompt, right = own
    at = next((i for i, (a, b) in enumerate(zip(written, right, strict=False)) if a != b), None)
    if at is None:
        assert len(written) == len(right)
        return
    row = loading.load_mlx_model("smollm2-135m").scorer().score([*prompt, *right[:at]], 1)[0]
    gap = float(row[right[at]] - row[written[at]])
    assert abs(gap) < TIE, f"token {at} is {written[at]} and not {right[at]}, which is {gap:.3f} nats more probable"
    warnings.warn(f"NUMERICAL TIE at token {at}: gap {gap:.5f} nats", stacklevel=1)


@pytest.mark.filterwarnings("default:NUMERICAL TIE")
@pytest.mark.parametrize("draft", ["ngram", "model:smollm2-draft"])
def test_greedy_text_is_the_local_targets(draft: str, builder: Builder, own: tuple[list[int], tuple[int, ...]]) -> None:
    settings = Settings(target=MODEL, draft=draft, tokenizer=TOKENIZER, max_tokens=TOKENS)
    pair = builder.build(settings)
    try:
        text, ids = prepare(pair.target, settings, PROMPT)
        events = list(speculative(pair.drafter, pair.target, ids, settings, seed=0))
    finally:
        pair.close()
    found = pair.target.findings  # type: ignore[attr-defined]
    assert found.ways == ("generating",) and not found.ids_in and found.ids_out and found.same_tokens, found
    started, ended = events[0], events[-1]
    assert isinstance(started, RunStarted) and started.way == "generating" and started.guarantee.kind == "EXACT"
    assert isinstance(ended, Done), ended
    assert ids == own[0], f"the prompt is another one: {text}"
    check_equal(ended.token_ids, own)
    assert ended.guarantee.kind == "EXACT", ended.guarantee
    if draft != "ngram":
        assert ended.total_accepted > 0


@pytest.mark.filterwarnings("default:NUMERICAL TIE")
def test_the_command_line_with_both_baselines(
    server: str, own: tuple[list[int], tuple[int, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--target", MODEL, "--base-url", server, "--draft", "smollm2-draft", "--max-tokens", "8"]
    assert main(["generate", "--prompt", PROMPT, *options, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    check_equal(data["token_ids"], (own[0], own[1][:8]))
    assert data["way"] == "generating" and data["requests"] > 0 and data["billed_completion_tokens"] >= 8
    assert data["baseline"] == "streaming" and data["baseline_tokens_per_second"] > 0
    assert data["per_call_tokens_per_second"] > 0
    assert data["time_ms"]["network"] is None and data["time_ms"]["call"] > 0
