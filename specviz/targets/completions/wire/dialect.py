"""The JSON of a request, for each engine. Pure: a `Request` in, path and JSON of a call out.

Servers have samplers that are on by default (llama-server: top-k 40, top-p 0.95, min-p 0.05; vLLM: those of the model's
generation_config), and a token drawn through them does not follow the settings. So every request names every sampler.
An unknown engine gets the fields of the completions API only, since a strict server refuses a field that it does not
know.
"""

from __future__ import annotations

from typing import Any

from specviz.targets.completions.values import Engine, Prompt, Request

#: The path of the completions API.
COMPLETIONS = "completions"

_NO_PENALTIES = {"presence_penalty": 0.0, "frequency_penalty": 0.0}

#: Per engine: everything else that would change a distribution, switched off.
_OFF: dict[Engine, dict[str, Any]] = {
    "vllm": {"min_p": 0.0, "repetition_penalty": 1.0, **_NO_PENALTIES},
    "sglang": {"min_p": 0.0, "repetition_penalty": 1.0, **_NO_PENALTIES},
    "llamacpp": {
        "min_p": 0.0,
        "typical_p": 1.0,
        "top_n_sigma": -1.0,
        "xtc_probability": 0.0,
        "dry_multiplier": 0.0,
        "dynatemp_range": 0.0,
        "mirostat": 0,
        "repeat_penalty": 1.0,
        **_NO_PENALTIES,
        # Its default order has the temperature last; top-p would then keep another set of tokens than ours does.
        "samplers": ["temperature", "top_k", "top_p"],
        "cache_prompt": True,
    },
    "llama-cpp-python": {"min_p": 0.0, "repeat_penalty": 1.0, "mirostat_mode": 0, **_NO_PENALTIES},
    "mlx": {"min_p": 0.0, "xtc_probability": 0.0, "repetition_penalty": 0.0, **_NO_PENALTIES},
    "fireworks": {"min_p": 0.0, "repetition_penalty": 1.0, **_NO_PENALTIES},
    "together": {"min_p": 0.0, "repetition_penalty": 1.0, **_NO_PENALTIES},
}

#: The value for "no top-k", for engines that need one. Every version of vLLM takes -1, only newer ones 0.
_NO_TOP_K: dict[Engine, int] = {
    "vllm": -1,
    "sglang": -1,
    "llamacpp": 0,
    "llama-cpp-python": 0,
    "mlx": 0,
    "fireworks": 0,
}

#: Engines that can be told to go on where the model ends its answer.
_CAN_GO_ON: tuple[Engine, ...] = ("vllm", "sglang", "llamacpp", "fireworks")

#: Fields for ids in addition to texts, and for texts in which special tokens are not left out.
_AS_IDS: dict[Engine, dict[str, Any]] = {
    "vllm": {"return_token_ids": True, "return_tokens_as_token_ids": True, "skip_special_tokens": False},
    "sglang": {"return_token_ids": True, "skip_special_tokens": False},
    "fireworks": {"return_token_ids": True},
}

#: The fields of llama-server's own answer that are read; by default it also repeats the prompt and every setting.
_LLAMACPP_FIELDS = (
    "index",
    "content",
    "tokens",
    "stop_type",
    "tokens_predicted",
    "tokens_evaluated",
    "timings",
    "completion_probabilities",
)


def body(request: Request, model: str, engine: Engine) -> dict[str, Any]:
    """The JSON for POST /v1/completions."""
    fields: dict[str, Any] = {
        "model": model,
        "prompt": _prompt(request.prompts),
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
    }
    if request.samples > 1:
        fields["n"] = request.samples
    if request.seed is not None:
        fields["seed"] = request.seed
    fields |= _top_k(request, engine) | _OFF.get(engine, {}) | _AS_IDS.get(engine, {})
    if request.past_stop and engine in _CAN_GO_ON:
        fields["ignore_eos"] = True
    if engine == "vllm" and any(isinstance(p, str) for p in request.prompts):
        fields["add_special_tokens"] = False
    return fields | _logprobs(request, engine) | _echo(request, engine)


def stream_body(request: Request, model: str, engine: Engine) -> dict[str, Any]:
    """The same for a stream, with the count of tokens at its end."""
    return body(request, model, engine) | {"stream": True, "stream_options": {"include_usage": True}}


def call(request: Request, model: str, engine: Engine) -> tuple[str, dict[str, Any]]:
    """Path and JSON of a POST: to an endpoint of the engine's own where that returns more than the completions API."""
    if engine == "sglang":
        return "/generate", sglang_body(request)
    if engine == "llamacpp":
        return "/completion", llamacpp_body(request, model)
    return COMPLETIONS, body(request, model, engine)


def llamacpp_body(request: Request, model: str) -> dict[str, Any]:
    """The JSON for llama-server's own POST /completion.

    Its completions API has one row for a whole character and none for a part of one, so ids are lost. Here all are
    named.
    """
    fields: dict[str, Any] = {
        "model": model,
        "prompt": _prompt(request.prompts),
        "n_predict": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        **_top_k(request, "llamacpp"),
        **_OFF["llamacpp"],
        "return_tokens": True,
        "response_fields": list(_LLAMACPP_FIELDS),
        "stream": False,
    }
    if request.samples > 1:
        fields["n"] = request.samples
    if request.seed is not None:
        fields["seed"] = request.seed
    if request.top is not None:
        fields["n_probs"] = max(1, request.top)
    return fields


def sglang_body(request: Request) -> dict[str, Any]:
    """The JSON for SGLang's own POST /generate.

    Its rows of a prompt start at `logprob_start_len`, and the first one is always empty: so one more than needed is
    requested. A start at 0 would make it compute the whole prompt again instead of using its cache.
    """
    sampling: dict[str, Any] = {
        "max_new_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "n": request.samples,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        **_top_k(request, "sglang"),
        **_OFF["sglang"],
    }
    if request.seed is not None:
        sampling["sampling_seed"] = request.seed
    as_text = any(isinstance(p, str) for p in request.prompts)
    fields: dict[str, Any] = {
        "text" if as_text else "input_ids": _prompt(request.prompts),
        "sampling_params": sampling,
        "stream": False,
    }
    if request.top is None:
        return fields
    starts = [_start(request, p) for p in request.prompts]
    return fields | {
        "return_logprob": True,
        "logprob_start_len": starts if len(starts) > 1 else starts[0],
        "top_logprobs_num": request.top,
        "return_text_in_logprobs": False,
    }


def sampling_differs(engine: Engine, temperature: float, top_k: int, top_p: float) -> str:
    """Why a server's draws at these settings follow another distribution than ours; empty where they follow ours.

    Ours is temperature, then top-k, then top-p of what top-k left. The order makes no difference without truncation, at
    temperature 0, and (except for that of top-k and top-p) at temperature 1.
    """
    if temperature == 0 or top_p >= 1.0:
        return ""
    if engine in ("mlx", "llama-cpp-python") and temperature != 1:
        return "it takes top-p before the temperature"
    if engine in ("mlx", "sglang") and top_k > 0:
        return "it takes top-p of the whole distribution, not of what top-k left"
    return ""


def _prompt(prompts: tuple[Prompt, ...]) -> Any:
    """A single prompt without a list around it: many servers take no list of prompts, not even of one."""
    plain = [p if isinstance(p, str) else list(p) for p in prompts]
    return plain[0] if len(plain) == 1 else plain


def _top_k(request: Request, engine: Engine) -> dict[str, int]:
    if request.top_k > 0:
        # Also for an unknown engine: without it the distribution would certainly be another one.
        return {"top_k": request.top_k}
    return {"top_k": _NO_TOP_K[engine]} if engine in _NO_TOP_K else {}


def _logprobs(request: Request, engine: Engine) -> dict[str, Any]:
    if request.top is None:
        return {}
    if engine == "mlx":
        # With top_logprobs its rows name another token than the one that it drew.
        return {"logprobs": True}
    if engine == "vllm":
        return {"logprobs": request.top}
    # To several servers 0 means no log-probabilities at all.
    return {"logprobs": max(1, request.top)}


def _echo(request: Request, engine: Engine) -> dict[str, Any]:
    if not request.echo:
        return {}
    if engine == "fireworks" and request.tail is not None:
        return {"echo": True, "echo_last": request.tail}
    return {"echo": True}


def _start(request: Request, prompt: Prompt) -> int:
    """Where SGLang's rows of a prompt begin; -1 for none. The length of a text in tokens is unknown: from its start."""
    if not request.echo:
        return -1
    if request.tail is None or isinstance(prompt, str):
        return 0
    return max(0, len(prompt) - request.tail - 1)
