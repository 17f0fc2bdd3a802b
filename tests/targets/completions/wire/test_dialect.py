import pytest

from specviz.targets.completions.values import Engine, Request
from specviz.targets.completions.wire.dialect import (
    body,
    call,
    llamacpp_body,
    sampling_differs,
    sglang_body,
    stream_body,
)

STANDARD = {"model", "prompt", "max_tokens", "temperature", "top_p", "n", "seed", "echo", "logprobs"}
KNOWN: list[Engine] = ["vllm", "llamacpp", "llama-cpp-python", "mlx", "fireworks", "together"]


@pytest.mark.parametrize("engine", ["", "cerebras"])
def test_an_unknown_engine_gets_the_fields_of_the_api_alone(engine: Engine) -> None:
    request = Request(((1, 2),), 3, 0.7, 0, 0.9, samples=2, top=0, echo=True, tail=1)
    assert set(body(request, "m", engine)) <= STANDARD
    assert body(request, "m", engine) == {
        "model": "m",
        "prompt": [1, 2],
        "max_tokens": 3,
        "temperature": 0.7,
        "top_p": 0.9,
        "n": 2,
        "echo": True,
        "logprobs": 1,
    }


def test_every_server_gets_the_top_k_of_the_settings() -> None:
    assert body(Request(("a",), top_k=5), "m", "")["top_k"] == 5


@pytest.mark.parametrize("engine", KNOWN)
def test_every_sampler_of_a_known_engine_is_named(engine: Engine) -> None:
    fields = body(Request(((1,),)), "m", engine)
    off = {"min_p": 0.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "temperature": 0.0, "top_p": 1.0}
    assert {k: fields[k] for k in off} == off
    assert "n" not in fields and "seed" not in fields and "echo" not in fields and "logprobs" not in fields


def test_llama_server_samples_in_our_order_with_its_defaults_off() -> None:
    fields = body(Request(((1,),), temperature=0.5, top_p=0.9, top=3), "m", "llamacpp")
    assert fields["samplers"] == ["temperature", "top_k", "top_p"]
    assert fields["top_k"] == 0 and fields["repeat_penalty"] == 1.0 and fields["cache_prompt"] is True
    assert fields["logprobs"] == 3
    # There 0 means no log-probabilities.
    assert body(Request(((1,),), top=0), "m", "llamacpp")["logprobs"] == 1


def test_the_own_endpoint_of_llama_server_names_every_id() -> None:
    request = Request(((1, 2), (3,)), 4, temperature=0.5, top_p=0.9, samples=2, top=0)
    fields = llamacpp_body(request, "m")
    assert fields["prompt"] == [[1, 2], [3]] and fields["n_predict"] == 4 and fields["n"] == 2
    assert fields["return_tokens"] is True and fields["n_probs"] == 1
    assert {"content", "tokens", "stop_type", "completion_probabilities"} <= set(fields["response_fields"])
    assert (fields["temperature"], fields["top_k"], fields["top_p"]) == (0.5, 0, 0.9)
    samplers = body(request, "m", "llamacpp")
    assert not {"max_tokens", "logprobs", "echo"} & set(fields)
    assert all(fields[k] == v for k, v in samplers.items() if k not in ("max_tokens", "logprobs"))
    assert "n_probs" not in llamacpp_body(Request(((1,),), seed=7), "m")
    assert llamacpp_body(Request(((1,),), seed=7), "m")["seed"] == 7


def test_an_engine_with_an_endpoint_of_its_own_gets_requests_there() -> None:
    request = Request(((1, 2),))
    paths = {engine: call(request, "m", engine)[0] for engine in (*KNOWN, "sglang", "")}
    own = {"sglang": "/generate", "llamacpp": "/completion"}
    assert paths == dict.fromkeys(paths, "completions") | own
    assert call(request, "m", "vllm")[1] == body(request, "m", "vllm")
    assert call(request, "m", "sglang")[1] == sglang_body(request)


def test_vllm_returns_ids_and_takes_texts_unchanged() -> None:
    fields = body(Request(((1, 2), (3,)), top=0, seed=None), "m", "vllm")
    assert fields["prompt"] == [[1, 2], [3]]
    assert fields["return_token_ids"] is fields["return_tokens_as_token_ids"] is True
    assert fields["top_k"] == -1 and fields["logprobs"] == 0 and fields["skip_special_tokens"] is False
    assert "add_special_tokens" not in fields
    assert body(Request(("a",)), "m", "vllm")["add_special_tokens"] is False


def test_mlx_gets_a_text_and_a_bool() -> None:
    fields = body(Request(("abc",), top=5), "m", "mlx")
    assert fields["prompt"] == "abc" and fields["logprobs"] is True and "top_logprobs" not in fields


def test_fireworks_returns_the_tail_only() -> None:
    assert body(Request(((1, 2, 3),), top=5, echo=True, tail=2), "m", "fireworks")["echo_last"] == 2


def test_a_seed_and_a_stream() -> None:
    fields = stream_body(Request((("a"),), seed=7), "m", "")
    assert fields["seed"] == 7 and fields["stream"] is True
    assert fields["stream_options"] == {"include_usage": True}


def test_sglang_starts_one_token_before_the_tail() -> None:
    fields = sglang_body(Request(((1, 2, 3, 4, 5),), 1, 1.0, 0, 0.9, top=4, echo=True, tail=2))
    assert fields["input_ids"] == [1, 2, 3, 4, 5] and "text" not in fields
    # Rows for the tokens at 2, 3, 4, of which the first is always empty.
    assert fields["logprob_start_len"] == 2 and fields["top_logprobs_num"] == 4 and fields["return_logprob"] is True
    sampling = fields["sampling_params"]
    assert sampling["max_new_tokens"] == 1 and sampling["top_k"] == -1 and sampling["top_p"] == 0.9
    assert sampling["repetition_penalty"] == 1.0 and sampling["min_p"] == 0.0 and "sampling_seed" not in sampling


def test_sglang_takes_batches_texts_and_seeds() -> None:
    batch = sglang_body(Request(((1, 2, 3), (4,)), top=0, echo=True, tail=1))
    assert batch["input_ids"] == [[1, 2, 3], [4]] and batch["logprob_start_len"] == [1, 0]
    text = sglang_body(Request(("abc",), top=0, echo=True, tail=1, seed=3))
    assert text["text"] == "abc" and text["logprob_start_len"] == 0
    assert text["sampling_params"]["sampling_seed"] == 3
    assert sglang_body(Request(((1, 2),), top=2))["logprob_start_len"] == -1
    assert "return_logprob" not in sglang_body(Request(((1, 2),)))


def test_a_server_with_another_order_of_samplers_is_named() -> None:
    assert sampling_differs("mlx", 0.7, 0, 0.9)
    assert sampling_differs("llama-cpp-python", 0.7, 0, 0.9)
    assert sampling_differs("sglang", 1.0, 5, 0.9)
    engines: tuple[Engine, ...] = ("vllm", "sglang", "llamacpp", "llama-cpp-python", "mlx", "")
    assert not any(sampling_differs(e, 0.7, 5, 1.0) for e in engines)
    assert not any(sampling_differs(e, 1.0, 0, 0.9) for e in engines)
    assert not any(sampling_differs(e, 0.0, 5, 0.9) for e in engines)
    assert not sampling_differs("llamacpp", 0.7, 5, 0.9) and not sampling_differs("vllm", 0.7, 5, 0.9)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llamacpp", "fireworks", "mlx", "cerebras", ""])
def test_engines_that_can_go_on_past_the_end(engine: Engine) -> None:
    fields = stream_body(Request(((1,),), past_stop=True), "m", engine)
    assert fields.get("ignore_eos") is (True if engine in ("vllm", "sglang", "llamacpp", "fireworks") else None)
    assert "ignore_eos" not in stream_body(Request(((1,),)), "m", engine)
