"""The toy server itself: the habits that the tests rely on."""

import json
import urllib.error
import urllib.request
from typing import Any

import numpy as np
import pytest

from specviz.engines.toy import ToyScorer, ToyTokenizer
from tests.targets.completions.toyserver import DIALECTS, ToyServer, serve

TABLE = [[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]


def ask(toy: ToyServer, **body: object) -> dict[str, Any]:
    status, answer = toy.answer("/v1/completions", {"model": "toy"} | body)
    assert status == 200 and isinstance(answer, dict), answer
    return answer


@pytest.mark.parametrize("dialect", DIALECTS)
def test_draws_are_the_models(dialect: str) -> None:
    toy = ToyServer(TABLE, dialect)
    off = {"top_k": 0, "min_p": 0, "top_p": 1.0, "temperature": 1.0, "max_tokens": 1}
    texts = [ask(toy, prompt="ab", **off)["choices"][0]["text"] for _ in range(3000)]
    share = [texts.count(c) / 3000 for c in "abc"]
    assert np.abs(np.array(share) - TABLE[1]).max() < 0.04


def test_an_equal_seed_is_equal_noise_in_every_row() -> None:
    toy = ToyServer(TABLE)
    prompt = {"prompt": [[0, 1]] * 8, "max_tokens": 4}
    same = {c["text"] for c in ask(toy, seed=3, **prompt)["choices"]}
    free = {c["text"] for c in ask(toy, **prompt)["choices"]}
    assert len(same) == 1 < len(free)


def test_llama_server_samples_with_its_own_defaults() -> None:
    toy = ToyServer([0.9, 0.06, 0.04], "llamacpp")
    assert all(ask(toy, prompt=[0], max_tokens=20)["choices"][0]["text"] == "a" * 20 for _ in range(5))
    off = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    assert set(ask(toy, prompt=[0], max_tokens=300, **off)["choices"][0]["text"]) == {"a", "b", "c"}


def test_vllm_scores_the_prompt() -> None:
    body = {"prompt": [0, 1, 2], "echo": True, "logprobs": 2, "max_tokens": 1, "return_tokens_as_token_ids": True}
    choice = ask(ToyServer(TABLE), temperature=0, **body)["choices"][0]
    rows = choice["logprobs"]
    assert rows["tokens"] == ["token_id:0", "token_id:1", "token_id:2", "token_id:2"]
    assert rows["token_logprobs"][0] is None and rows["top_logprobs"][0] is None
    assert np.allclose(np.exp(rows["token_logprobs"][1:]), [0.6, 0.25, 0.6], atol=1e-6)
    assert choice["prompt_logprobs"][2]["2"]["rank"] == 3  # behind 0 and 1, which ties before it


def test_llama_cpp_python_is_a_row_late_without_a_bos() -> None:
    body = {"prompt": "abc", "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}
    late = ask(ToyServer(TABLE, "llama-cpp-python"), **body)["choices"][0]["logprobs"]
    assert np.allclose(np.exp(late["token_logprobs"][1:]), [TABLE[1][1], TABLE[2][2]], atol=1e-6)
    right = ask(ToyServer(TABLE, "llama-cpp-python", bos_id=0), **body)["choices"][0]["logprobs"]
    assert np.allclose(np.exp(right["token_logprobs"][1:]), [0.6, 0.25, 0.6], atol=1e-6)


@pytest.mark.parametrize(
    ("dialect", "body", "status"),
    [
        ("vllm", {"prompt": [0], "logprobs": 21}, 400),
        ("vllm", {"prompt": [0], "max_tokens": 0}, 400),
        ("vllm", {"prompt": [99]}, 400),
        ("llama-cpp-python", {"prompt": [0]}, 422),
        ("mlx", {"prompt": [[0]]}, 404),
        ("mlx", {"prompt": "a", "logprobs": 1}, 400),
        ("generates", {"prompt": ["a", "b"]}, 400),
    ],
)
def test_refusals(dialect: str, body: dict[str, Any], status: int) -> None:
    assert ToyServer(TABLE, dialect).answer("/v1/completions", {"model": "toy"} | body)[0] == status


def test_sglangs_own_endpoint() -> None:
    body = {
        "input_ids": [[0, 1, 2], [1]],
        "sampling_params": {"temperature": 0, "max_new_tokens": 1},
        "return_logprob": True,
        "logprob_start_len": [1, 0],
        "top_logprobs_num": 2,
    }
    status, answer = ToyServer(TABLE, "sglang").answer("/generate", body)
    assert status == 200 and len(answer) == 2
    rows = answer[0]["meta_info"]["input_token_logprobs"]
    assert [r[1] for r in rows] == [1, 2] and rows[0][0] is None
    assert np.exp(rows[1][0]) == pytest.approx(0.25)


def test_parts_of_a_character_share_a_key() -> None:
    tokenizer = ToyTokenizer()
    toy = ToyServer(ToyScorer(tokenizer), tokenizer=tokenizer)
    body = {"prompt": [0, tokenizer.first_half_id], "logprobs": 3, "max_tokens": 1}
    rows = ask(toy, **body)["choices"][0]["logprobs"]
    assert rows["tokens"] == [""] and "" in rows["top_logprobs"][0]


def test_llama_server_hides_parts_of_characters() -> None:
    tokenizer = ToyTokenizer()
    half = tokenizer.first_half_id
    rows = np.zeros((tokenizer.vocab_size, tokenizer.vocab_size))
    rows[:, half] = 1.0
    rows[half] = np.eye(tokenizer.vocab_size)[half + 1]
    toy = ToyServer(rows.tolist(), "llamacpp", tokenizer)
    assert ask(toy, prompt=[0], max_tokens=1, logprobs=1)["choices"][0]["logprobs"] is None
    answer = ask(toy, prompt=[0], max_tokens=4, logprobs=1)
    content = answer["choices"][0]["logprobs"]["content"]
    assert [c["id"] for c in content] == [half + 1] * 2 and answer["usage"]["completion_tokens"] == 4
    assert bytes(content[0]["bytes"]).decode() == "😀"


def test_mlx_dies_of_what_it_has_written() -> None:
    toy = ToyServer(TABLE, "mlx")
    ask(toy, prompt="ab", max_tokens=1, temperature=0)
    ask(toy, prompt="ab", max_tokens=1, temperature=0)
    assert toy.answer("/v1/completions", {"model": "toy", "prompt": "aba"})[0] == 404 and toy.dead
    assert toy.answer("/v1/completions", {"model": "toy", "prompt": "c"})[0] == 404


def post(url: str, body: dict[str, Any], key: str = "") -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


def test_over_a_socket() -> None:
    toy = ToyServer(TABLE, key="secret", seed=1)
    body = {"model": "toy", "prompt": [0], "max_tokens": 3, "stream": True, "stream_options": {"include_usage": True}}
    with serve(toy) as url:
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            post(f"{url}/completions", body)
        refused.value.close()
        events = post(f"{url}/completions", body, "secret").decode().split("\n\n")
        assert events[-2] == "data: [DONE]"
        parts = [json.loads(e[6:]) for e in events[:-2]]
        assert len("".join(c["text"] for p in parts for c in p["choices"])) == 3
        assert parts[-1]["usage"]["completion_tokens"] == 3
