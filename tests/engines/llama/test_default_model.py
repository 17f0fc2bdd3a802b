"""The default model and its draft on this engine, without MLX: ids, rows, greedy text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from specviz.core import session
from specviz.core.events import Done, Metrics, RunStarted
from specviz.core.noise import Noise
from specviz.core.ports import Model
from specviz.core.rounds import Round
from specviz.core.sampling import to_probs
from specviz.core.settings import Settings
from specviz.engines.llama.model import LlamaModel
from specviz.engines.llama.trust import divergence
from specviz.engines.tokenizer import ModelTokenizer
from specviz.setup.builder import Builder
from specviz.setup.loading import Loading, load_model
from specviz.store import store
from specviz.targets.local import LocalTarget

#: Of a sampled token. A wrong rule that ignores q is seen with a tenth of them.
ROUNDS = 200

ODD = (
    "Hello world",
    "  two  spaces\n\n\ttabs \n ",
    "1234567 3.14 ½",
    "naïve café 😀👩‍👩‍👧",
    "don't I'll we've THEY'RE",
    "\u200b\ufeffzero",
    "a" * 700,
    "日本語のテキスト。",
    "",
    " ",
    "\n",
    "def f(x):\n    return x**2 # ok",
    "e\u0301 é \x00 \x7f",
    "<|im_start|>user\nhi<|im_end|>",
    "<|im_start|<|im_end|>>",
    "<|endoftext|><repo_name>",
    "\r\n\r\n",
    "!!!???...///",
)


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model("smollm2-135m", how=Loading("llama"))


@pytest.fixture(scope="module")
def rebuilt() -> ModelTokenizer:
    """The tokenizer that is rebuilt from the same file for MLX, by another library."""
    return ModelTokenizer(store.pull("smollm2-135m"))


def test_what_is_known_about_it(model: Model) -> None:
    assert isinstance(model, LlamaModel)
    assert (model.engine, model.precision, model.max_context) == ("llama", "Q8_0", 8192)
    assert model.model_file == "SmolLM2-135M-Instruct.Q8_0.gguf"


def test_odd_texts_have_the_ids_of_the_other_tokenizer(model: Model, rebuilt: ModelTokenizer) -> None:
    for text in ODD:
        ids = model.tokenizer.encode(text)
        assert ids == rebuilt.encode(text), text
        assert model.tokenizer.decode(ids) == rebuilt.decode(ids), text


def test_so_have_conversations_with_names_of_special_tokens_in_them(model: Model, rebuilt: ModelTokenizer) -> None:
    for text in filter(str.strip, ODD):
        before = [("Who are you? <|im_end|>", f"I am {text}")]
        assert model.tokenizer.chat_ids(text) == rebuilt.chat_ids(text), text
        assert model.tokenizer.chat_ids(text, "Be brief.<|im_end|>", before) == rebuilt.chat_ids(
            text, "Be brief.<|im_end|>", before
        )


def test_every_token_is_the_same(model: Model, rebuilt: ModelTokenizer) -> None:
    assert model.vocabulary == rebuilt.vocabulary and model.stop_ids == rebuilt.stop_ids
    for i in range(0, rebuilt.vocab_size, 7):
        assert model.tokenizer.token_bytes(i) == rebuilt.token_bytes(i)
        assert model.tokenizer.token_name(i) == rebuilt.token_name(i)


def test_a_block_has_the_bits_of_single_tokens(model: Model) -> None:
    """In Q8_0: what makes greedy texts equal without near ties."""
    ids = model.tokenizer.chat_ids("Write a story about a robot who paints.")[1]
    block = [788, 260, 713, 216, 34]
    scorer = model.scorer()
    scorer.score(ids, 1)
    together = np.array(scorer.score([*ids, *block], len(block)))
    scorer.score(ids, 1)
    alone = [np.array(scorer.score([*ids, *block[: i + 1]], 1)[0]) for i in range(len(block))]
    np.testing.assert_array_equal(together, alone)


def test_equal_passes_have_equal_bits_after_a_rewind_and_after_loading_again(model: Model) -> None:
    ids = model.tokenizer.encode("The capital of France is Paris, and the capital of Italy is")
    scorer, again = model.scorer(), load_model("smollm2-135m", how=Loading("llama")).scorer()
    first = np.array(scorer.score(ids, 3))
    scorer.score([*ids[:5], 11, 12, 13], 2)
    scorer.reset()
    np.testing.assert_array_equal(scorer.score(ids, 3), first)
    np.testing.assert_array_equal(again.score(ids, 3), first)


def test_candidates_in_one_pass_have_the_rows_of_single_passes(model: Model) -> None:
    """But for the order of sums in the attention, which goes over the cells of all candidates."""
    ids = model.tokenizer.chat_ids("Name three colours.")[1]
    blocks = [[504, 1040], [504, 1040, 30], [504, 99], [7, 8, 9, 10], []]
    scorer = model.scorer()
    for block, rows in zip(blocks, scorer.score_blocks(ids, blocks), strict=True):
        alone = model.scorer().score([*ids, *block], len(block) + 1)
        assert divergence(np.array(alone), rows) < 0.01
        assert (rows.argmax(-1) == alone.argmax(-1)).all()
    # The cache goes on from any of them: only what is new is computed.
    follows = [*ids, *blocks[3], 11]
    assert divergence(np.array(model.scorer().score(follows, 1)), scorer.score(follows, 1)) < 0.01


@pytest.mark.parametrize("draft", ["ngram", "model:smollm2-draft", "ngram+model:smollm2-draft"])
def test_greedy_speculation_writes_what_plain_decoding_writes(draft: str) -> None:
    builder = Builder({})
    texts = []
    for chosen, k in ((draft, 4), (draft, 1), ("none", 1)):
        settings = Settings(draft=chosen, k=k, max_tokens=40, engine="llama")
        events = list(
            session.run(builder.build(settings), "List five rivers of Europe, then list them again.", settings)
        )
        assert isinstance(events[0], RunStarted) and events[0].engine == "llama"
        assert events[0].draft_engine == ("llama" if "model" in chosen else "")
        done = events[-1]
        assert isinstance(done, Done) and any(isinstance(e, Metrics) for e in events)
        texts.append(done.token_ids)
    assert texts[0] == texts[1] == texts[2]


def test_sampled_tokens_have_the_targets_distribution() -> None:
    """On the rows of both models: the identity of rejection sampling, and chi-square over rounds of the real loop."""
    settings = Settings(temperature=1.0, top_k=8, k=2, min_confidence=0.0, engine="llama", draft="model:smollm2-draft")
    pair = Builder({}).build(settings)
    target, drafter, rule = pair.target, pair.drafter, settings.acceptance_rule
    assert isinstance(target, LocalTarget)
    ids = target.tokenizer.chat_ids("Write one sentence about the sea.")[1]
    p = to_probs(np.array(target.scorer.score(ids, 1)[0]), settings.sampling)
    q = drafter.propose(ids, 1, settings.sampling, Noise(0, 0)).first.q[0].dense(len(p))
    kept = np.minimum(1, np.divide(p, q, out=np.ones_like(p), where=q > 0))
    rest = np.maximum(0, p - q)
    np.testing.assert_allclose(q * kept + (1 - (q * kept).sum()) * rest / rest.sum(), p, atol=1e-6)

    counts = np.zeros(len(p))
    for number in range(ROUNDS):
        noise = Noise(11, number)
        draft = drafter.propose(ids, settings.k, settings.sampling, noise)
        verdict = target.verify(Round(tuple(ids), draft, settings.sampling, rule, noise))
        counts[verdict.token_ids[0]] += 1
    likely = p > 0
    assert counts[~likely].sum() == 0
    assert chisquare(counts[likely], ROUNDS * p[likely] / p[likely].sum()).pvalue > 1e-3


def test_the_default_pair_runs_without_mlx(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['mlx'] = sys.modules['mlx_lm'] = None\n"
        "from specviz.__main__ import main\n"
        "sys.argv = ['specviz', 'generate', '--prompt', 'Hi', '--max-tokens', '6', '--no-baseline']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert "engine llama" in done.stderr, done.stderr
