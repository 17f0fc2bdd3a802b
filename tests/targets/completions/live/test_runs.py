"""A real llama-server, end to end: through it, speculative decoding writes what plain decoding writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specviz.core.errors import IncapableError
from specviz.core.events import RunStarted, Way
from specviz.core.prompt import prepare
from specviz.core.sampling import to_probs
from specviz.core.settings import Sampling
from specviz.targets.completions.reading import answers
from specviz.targets.completions.values import Choice, Request
from specviz.targets.completions.wire.transport import HttpCompletions
from tests.llama_server import MODEL, LlamaServer
from tests.real.server import connected
from tests.targets.completions.live.runs import LLAMAS, SKY, Ran, Runs, check_equal

pytestmark = pytest.mark.smollm

PLAIN: dict[str, dict[str, Any]] = {LLAMAS: {"raw": True, "max_tokens": 30}, SKY: {}}


@pytest.fixture(scope="module")
def plain(live: Runs) -> dict[str, Ran]:
    """Greedy, a token a call."""
    return {prompt: live.run(prompt, draft="none", **chosen) for prompt, chosen in PLAIN.items()}


@pytest.mark.parametrize(
    ("way", "draft", "k", "prompt"),
    [
        ("prefixes", "ngram", 4, LLAMAS),
        ("generating", "ngram", 4, LLAMAS),
        ("prefixes", "model:smollm2-draft", 2, SKY),
        ("generating", "model:smollm2-draft", 4, SKY),
        # More prefixes than the server has slots.
        ("prefixes", "ngram+model:smollm2-draft", 8, LLAMAS),
    ],
)
def test_greedy_text_is_that_of_plain_decoding(
    live: Runs, plain: dict[str, Ran], way: Way, draft: str, k: int, prompt: str
) -> None:
    ran = live.run(prompt, verification=way, draft=draft, k=k, **PLAIN[prompt])
    check_equal(ran, plain[prompt])
    assert ran.ended.guarantee.kind == "EXACT" and ran.ended.total_accepted > 0
    assert ran.requests < len(plain[prompt].ended.token_ids)
    started = ran.events[0]
    assert isinstance(started, RunStarted) and started.way == way


def test_characters_of_several_tokens_come_whole(plain: dict[str, Ran]) -> None:
    ran = plain[LLAMAS]
    assert "🦙" in ran.text
    # Parts of it have no row, so that nothing is known of them; the whole tokens have theirs.
    known = [d.final_logprob is not None for d in ran.decisions]
    assert any(known) and not all(known)
    assert all(d.final_logprob <= 0 and d.top_tokens for d in ran.decisions if d.final_logprob is not None)


def test_an_output_ends_with_its_budget_and_with_its_own_end(live: Runs, plain: dict[str, Ran]) -> None:
    short = live.run(LLAMAS, draft="ngram", raw=True, max_tokens=7)
    assert short.ended.token_ids == plain[LLAMAS].ended.token_ids[:7] and short.ended.finish_reason == "max_tokens"
    said = live.run("Say only: one two three four. Say only: one two three", draft="ngram", k=8)
    assert said.ended.finish_reason == "stop_token" and said.text.isprintable()


@pytest.mark.parametrize("way", ["prefixes", "generating"])
def test_a_stop_string_ends_text_and_ids_inside_a_block(live: Runs, plain: dict[str, Ran], way: Way) -> None:
    ran = live.run(LLAMAS, verification=way, draft="ngram", raw=True, max_tokens=30, k=8, stop=("🦙. I",))
    assert ran.ended.finish_reason == "stop_string" and ran.text.endswith("🦙. I") and ran.text.count("🦙") == 1
    count = len(ran.ended.token_ids)
    assert ran.ended.token_ids == plain[LLAMAS].ended.token_ids[:count] and len(ran.decisions) == count


@pytest.mark.parametrize("way", ["prefixes", "generating"])
def test_a_sampled_run_ends_well(live: Runs, way: Way) -> None:
    chosen: dict[str, Any] = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "seed": 3, "max_tokens": 12}
    # A batch is sent without a seed, and gives another text each time.
    runs = [live.run(SKY, verification=way, draft="ngram", **chosen) for _ in range(2 if way == "generating" else 1)]
    for ran in runs:
        assert ran.ended.guarantee.kind == "EXACT" and ran.ended.total_tested > 0
        assert ran.ended.total_tokens == 12 or ran.ended.finish_reason == "stop_token"
    assert runs[0].ended.token_ids == runs[-1].ended.token_ids


def test_names_of_special_tokens_are_text_in_a_users_words(live: Runs) -> None:
    words = "What is <|im_end|> for?"
    pair, settings = live.pair(draft="ngram")
    try:
        _, ids = prepare(pair.target, settings, words)
        end = pair.target.tokenizer.encode("<|im_end|>")
        assert len(end) == 1 and ids.count(end[0]) == pair.target.tokenizer.chat(words).count("<|im_end|>") - 1
    finally:
        pair.close()
    # The ids reach the server as they are: it knows what it is asked about.
    ran = live.run(words, draft="ngram")
    assert ran.ended.guarantee.kind == "EXACT" and "im_end" in ran.text


def test_scoring_is_refused_with_the_reason(live: Runs) -> None:
    with pytest.raises(IncapableError, match="does not give log-probabilities of given tokens"):
        live.pair(draft="ngram", verification="scoring")


def test_its_own_samplers_are_off(server: LlamaServer, live: Runs) -> None:
    """By default it cuts what it draws from: top-k 40, top-p 0.95, min-p 0.05."""
    pair, settings = live.pair(draft="none")
    pair.close()
    _, ids = prepare(pair.target, settings, "Tell me a story.")
    size, count, hot = pair.target.capabilities.vocab_size, 40, Sampling(2.0)
    with connected(server.url, MODEL) as api:
        (whole,) = _generated(api, Request((tuple(ids),), top=size), size)
        drawn = _generated(api, Request((tuple(ids),) * count, temperature=hot.temperature), size)
    logits = np.full(size, -np.inf)
    for likely in whole.rows[0].top:
        logits[likely.token_id] = likely.logprob
    p = to_probs(logits, hot)
    best = np.argsort(-p)[:40]
    share = float(p[best].sum())
    assert share < 0.8
    inside = sum((choice.token_ids or (-1,))[0] in best for choice in drawn)
    assert abs(inside - count * share) < 4 * (count * share * (1 - share)) ** 0.5


def _generated(api: HttpCompletions, request: Request, size: int) -> tuple[Choice, ...]:
    return answers.read(api.complete(request, engine="llamacpp").body, request, "llamacpp", size).choices
