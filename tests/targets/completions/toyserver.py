"""A completions server with a model that the test knows exactly, and the habits of real servers.

`ToyServer.answer(path, body)` is the server without a socket; `serve(toy)` puts it on a free port of the loopback;
`InMemory(toy)` is the API as `specviz.targets.completions` sees it, through the real dialect and without a socket.

An equal `seed` gives equal noise in EVERY row of a request, as real servers may do: whoever sends one with a batch gets
rows that depend on each other.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from specviz.core.errors import AnswerError, RefusedError, UnreachableError
from specviz.core.ports import Scorer, Tokenizer
from specviz.core.sampling import draw, to_probs
from specviz.core.settings import Sampling
from specviz.targets.completions.values import Engine, Piece, Reply, Request
from tests.toys import FixedScorer, LetterTokenizer, MarkovScorer

DIALECTS = ("vllm", "sglang", "llamacpp", "llama-cpp-python", "mlx", "generates")
#: What `Findings.engine` is to become for each.
ENGINES: dict[str, Engine] = {d: d for d in DIALECTS} | {"generates": ""}  # type: ignore[assignment]

TAKES_IDS = ("vllm", "sglang", "llamacpp")


@dataclass(frozen=True)
class Made:
    """One continuation: its ids, and for each the log-probabilities (V,) as the server reports them."""

    prompt: list[int]
    ids: list[int]
    rows: list[np.ndarray]
    finish: str


class BadRequest(Exception):
    """Becomes an HTTP status with the dialect's own error body."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ToyServer:
    """Answers as one kind of server does.

    Args:
        model: a `ports.Scorer`, a table of probabilities (row i stands behind id i), or one row for every position.
        dialect: one of `DIALECTS`.
        tokenizer: of the server. An `encode` that fails is a 400.
        seed: of what is drawn without a seed in the request.
        processed: log-probabilities of generated tokens are after temperature, top-k and top-p; None: as the dialect
            does (SGLang after temperature, all others before).
        bos_id: put in front of prompts that come as text.
        key: bearer token that `serve` asks for; empty for none.
        top_cap: how many top log-probabilities may be asked for.
        statuses: answered to the next completion requests in place of an answer, in order.
    """

    def __init__(
        self,
        model: Scorer | Sequence[Sequence[float]] | Sequence[float],
        dialect: str = "vllm",
        tokenizer: Tokenizer | None = None,
        *,
        name: str = "toy",
        seed: int = 0,
        processed: bool | None = None,
        bos_id: int | None = None,
        key: str = "",
        top_cap: int = 20,
        max_context: int = 4096,
        stop_ids: frozenset[int] | None = None,
        statuses: Sequence[int] = (),
    ) -> None:
        if dialect not in DIALECTS:
            raise ValueError(f"no such dialect: {dialect}")
        self.scorer: Scorer = _scorer(model)
        self.dialect, self.name, self.key, self.top_cap = dialect, name, key, top_cap
        self.tokenizer: Tokenizer = tokenizer or LetterTokenizer()
        self.processed = (dialect == "sglang") if processed is None else processed
        self.bos_id, self.max_context = bos_id, max_context
        self.stop_ids = getattr(self.tokenizer, "stop_ids", frozenset()) if stop_ids is None else stop_ids
        self.statuses = list(statuses)
        #: Whether its generating thread has died, as that of mlx_lm.server does of a list of prompts, and of a prompt
        #: that it has read and written to the last token. Every later request fails.
        self.dead = False
        self._written: set[tuple[int, ...]] = set()
        #: Every completion request that came, as (path, body).
        self.requests: list[tuple[str, dict[str, Any]]] = []
        #: Every path that was fetched.
        self.fetched: list[str] = []
        self.vocab_size = int(self.scorer.score([0], 1).shape[1])
        self._rng = np.random.default_rng(seed)
        self._lock = threading.Lock()

    # What a client sees.

    def answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        """Status and JSON of a POST."""
        with self._lock:
            self.requests.append((path, dict(body)))
            if self.statuses:
                status = self.statuses.pop(0)
                return status, self._error(status, "as the test wants it")
            try:
                if path.endswith("/generate") and self.dialect == "sglang":
                    return 200, self._native(body)
                if path.endswith("/completion") and self.dialect == "llamacpp":
                    return 200, self._llamacpp_native(body)
                if not path.endswith("/completions"):
                    raise BadRequest(404, "Not Found")
                return 200, self._completions(body)
            except BadRequest as exc:
                return exc.status, self._error(exc.status, str(exc))

    def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON of a GET; "/v1/models", "/version", "/props", "/get_server_info"."""
        self.fetched.append(path)
        path = path.rstrip("/")
        if path.endswith("/models"):
            return 200, {"object": "list", "data": [self._card()]}
        if path.endswith("/version") and self.dialect == "vllm":
            return 200, {"version": "0.32.0"}
        if path.endswith("/props") and self.dialect == "llamacpp":
            settings = {"n_ctx": self.max_context}
            return 200, {"default_generation_settings": settings, "build_info": "b1-7e4c0a9", "total_slots": 4}
        if path.endswith(("/get_server_info", "/server_info")) and self.dialect == "sglang":
            return 200, {"version": "0.5.23", "max_total_num_tokens": self.max_context}
        return 404, self._error(404, "Not Found")

    def stream(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any | Iterator[str]]:
        """Status, and lines of server-sent events; an error comes as JSON."""
        status, whole = self.answer(path, {**body, "stream": False})
        if status != 200:
            return status, whole
        if path.endswith("/generate"):
            return status, _events(self._grown(body, whole))
        return status, _events(self._chunks(body, whole))

    # The model.

    def logprobs(self, ids: Sequence[int]) -> np.ndarray:
        """(V,) natural log-probabilities behind a context, at temperature 1."""
        logits = self.scorer.score(ids, 1)[0].astype(np.float64)
        return _log_softmax(logits)

    def probs(self, ids: Sequence[int], sampling: Sampling) -> np.ndarray:
        """(V,) what is drawn from behind a context."""
        return to_probs(self.scorer.score(ids, 1)[0], sampling)

    def _continue(self, prompt: list[int], body: Mapping[str, Any], budget: int) -> Made:
        seed = body.get("seed", body.get("sampling_seed"))
        rng = self._rng if seed is None or seed == -1 else np.random.default_rng(seed)
        sampling, min_p = self._sampling(body)
        made: list[int] = []
        rows: list[np.ndarray] = []
        for _ in range(min(budget, self.max_context - len(prompt))):
            context = [*prompt, *made]
            p = self.probs(context, sampling)
            if min_p > 0:
                p = np.where(p >= min_p * p.max(), p, 0.0)
            made.append(draw(p / p.sum(), rng))
            rows.append(self._reported(context, p / p.sum(), sampling))
            if made[-1] in self.stop_ids:
                return Made(prompt, made, rows, "stop")
        return Made(prompt, made, rows, "length")

    def _reported(self, context: Sequence[int], p: np.ndarray, sampling: Sampling) -> np.ndarray:
        # Greedy rows are before temperature everywhere: there is no distribution after temperature 0.
        if not self.processed or sampling.temperature == 0:
            return self.logprobs(context)
        if self.dialect == "sglang":  # after temperature, before top-k and top-p
            return _log_softmax(self.logprobs(context) / sampling.temperature)
        with np.errstate(divide="ignore"):
            logprobs: np.ndarray = np.log(p)
        return logprobs

    def _sampling(self, body: Mapping[str, Any]) -> tuple[Sampling, float]:
        """Settings of a request over the server's own defaults."""
        llama = self.dialect == "llamacpp"
        temperature = float(_or(body.get("temperature"), 0.8 if llama else 0.0 if self.dialect == "mlx" else 1.0))
        top_k = int(_or(body.get("top_k"), 40 if llama else 0))
        top_p = float(_or(body.get("top_p"), 0.95 if llama else 1.0))
        min_p = float(_or(body.get("min_p"), 0.05 if llama else 0.0))
        kept = body.get("samplers") if llama else None
        if kept is not None:
            top_k = top_k if "top_k" in kept else 0
            top_p = top_p if "top_p" in kept else 1.0
            min_p = min_p if "min_p" in kept else 0.0
            temperature = temperature if "temperature" in kept else 1.0
        if self.dialect == "generates":
            top_k, min_p = 0, 0.0  # unknown fields are ignored, with a 200
        return Sampling(temperature, max(0, top_k), top_p if top_p < 1 else 1.0), min_p

    # /v1/completions.

    def _completions(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if self.dialect != "llamacpp" and body.get("model") != self.name:
            raise BadRequest(404, f"The model `{body.get('model')}` does not exist.")
        self._check_logprobs(body)
        prompts = self._prompts(body.get("prompt"))
        echo = bool(body.get("echo")) and self.dialect in ("vllm", "sglang", "llama-cpp-python")
        budget = self._budget(body, echo)
        samples = int(_or(body.get("n"), 1)) if self.dialect in TAKES_IDS else 1
        made = [self._continue(p, body, max(1, budget)) for p in prompts for _ in range(samples)]
        self._remember(made)
        keep_none = budget == 0
        choices = [self._choice(i, m, body, echo, keep_none) for i, m in enumerate(made)]
        return {
            "id": "cmpl-1",
            "object": "text_completion",
            "created": 1795842622,
            "model": self.name,
            "system_fingerprint": f"toy-{self.dialect}",
            "choices": choices,
            "usage": self._usage(prompts, made),
        } | self._extras(made)

    def _prompts(self, prompt: Any) -> list[list[int]]:
        several = isinstance(prompt, list) and (not prompt or not isinstance(prompt[0], int))
        prompts = list(prompt) if several else [prompt]
        if not prompts:
            raise BadRequest(400, "prompt is empty")
        if self.dialect == "mlx" and not isinstance(prompt, str):
            self.dead = True
        if self.dead:
            raise BadRequest(404, "generation thread died")
        if self.dialect == "llama-cpp-python" and len(prompts) > 1:
            raise BadRequest(500, "Internal Server Error")
        if self.dialect == "generates" and several:
            raise BadRequest(400, "prompt: Input should be a valid string")
        return [self._ids(p) for p in prompts]

    def _ids(self, prompt: Any) -> list[int]:
        if isinstance(prompt, str):
            try:
                ids = self.tokenizer.encode(prompt)
            except (ValueError, KeyError) as exc:
                raise BadRequest(400, f"cannot encode the prompt: {exc}") from exc
            if not ids and self.bos_id is None:
                raise BadRequest(400, "prompt is empty")
            return [*([] if self.bos_id is None else [self.bos_id]), *ids]
        if self.dialect not in TAKES_IDS:
            raise BadRequest(422, "prompt: Input should be a valid string")
        if not isinstance(prompt, list) or not prompt or any(type(i) is not int for i in prompt):
            raise BadRequest(400, "prompt: not a list of token ids")
        if any(not 0 <= i < self.vocab_size for i in prompt):
            raise BadRequest(400, "Token id is out of vocabulary")
        return list(prompt)

    def _remember(self, made: list[Made]) -> None:
        """What mlx_lm.server keeps: whole sequences, no beginnings of them."""
        if self.dialect != "mlx":
            return
        for one in made:
            if tuple(one.prompt) in self._written:
                self.dead = True
                raise BadRequest(404, "generation thread died")
            new = (*one.prompt, *one.ids)
            self._written = {w for w in self._written if new[: len(w)] != w} | {new}

    def _budget(self, body: Mapping[str, Any], echo: bool) -> int:
        budget = int(_or(body.get("max_tokens"), 16))
        if self.dialect == "vllm" and budget < 1 and not (echo and budget == 0):
            raise BadRequest(400, f"max_tokens must be at least 1, got {budget}.")
        if self.dialect in ("sglang", "mlx", "generates") and budget < 1:
            raise BadRequest(400, "max_tokens must be positive")
        if self.dialect in ("llamacpp", "llama-cpp-python"):
            return max(1, budget)  # 0 still makes one token
        return budget

    def _check_logprobs(self, body: Mapping[str, Any]) -> None:
        asked = body.get("logprobs")
        if self.dialect == "mlx" and asked is not None and not isinstance(asked, bool):
            raise BadRequest(400, "logprobs must be of type bool")
        if self.dialect == "mlx" and not -1 <= int(_or(body.get("top_logprobs"), -1)) <= 11:
            raise BadRequest(400, "top_logprobs must be between 0 and 11")
        if self.dialect == "vllm":
            wanted = max(int(_or(asked, 0)), int(_or(body.get("prompt_logprobs"), 0)))
            if wanted > self.top_cap:
                raise BadRequest(
                    400,
                    f"Requested sample logprobs of {wanted}, which is greater than max allowed: {self.top_cap}",
                )

    def _choice(self, index: int, made: Made, body: Mapping[str, Any], echo: bool, keep_none: bool) -> dict[str, Any]:
        ids, rows = ([], []) if keep_none else (made.ids, made.rows)
        text = self._text(ids)
        asked = body.get("logprobs")
        choice: dict[str, Any] = {"index": index, "text": text, "finish_reason": made.finish, "logprobs": None}
        if self.dialect == "mlx":
            choice["logprobs"] = self._mlx_rows(ids, rows, body)
        elif self.dialect == "llamacpp":
            if asked:
                content = self._by_character(ids, rows, int(asked))
                choice["logprobs"] = {"content": content} if content else None
        elif self.dialect == "llama-cpp-python":
            choice["text"] = (self._text(made.prompt) if echo else "") + text
            if asked:
                choice["logprobs"] = self._misaligned(made, int(asked), echo)
        elif self.dialect == "sglang":
            choice |= self._sglang_choice(made, body, echo)
        elif self.dialect == "vllm":
            choice |= self._vllm_choice(made, ids, rows, body, echo)
        return choice

    def _usage(self, prompts: list[list[int]], made: list[Made]) -> dict[str, Any]:
        # llama-server counts the first prompt alone.
        counted = prompts[:1] if self.dialect == "llamacpp" else prompts
        read = sum(len(p) for p in counted)
        # vLLM counts the token of max_tokens=0 too, which it does not show.
        written = sum(len(m.ids) for m in made)
        details = {"prompt_tokens_details": {"cached_tokens": 0}} if self.dialect == "llamacpp" else {}
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written} | details

    def _extras(self, made: list[Made]) -> dict[str, Any]:
        if self.dialect != "llamacpp":
            return {}
        return {"timings": {"prompt_n": len(made[0].prompt), "prompt_ms": 2.0, "predicted_n": 1, "predicted_ms": 1.0}}

    # Rows in the shapes of each server.

    def _vllm_choice(
        self, made: Made, ids: list[int], rows: list[np.ndarray], body: Mapping[str, Any], echo: bool
    ) -> dict[str, Any]:
        choice: dict[str, Any] = {"stop_reason": None, "prompt_logprobs": None}
        as_ids, return_ids = body.get("return_tokens_as_token_ids"), body.get("return_token_ids")
        names = (lambda i: f"token_id:{i}") if as_ids else self._name
        asked, prompt_asked = body.get("logprobs"), body.get("prompt_logprobs")
        if echo and asked is not None:
            prompt_asked = asked
        if prompt_asked is not None:
            choice["prompt_logprobs"] = [None, *(self._ranked(i, r, int(prompt_asked)) for i, r in self._scored(made))]
        if asked is not None:
            behind = list(zip(ids, rows, strict=True))
            known = [None, *self._scored(made)] if echo else []
            legacy: list[tuple[int, np.ndarray | None]] = [(made.prompt[0], None)] if echo else []
            legacy += [k for k in known if k is not None] + behind
            choice["logprobs"] = _legacy(legacy, int(asked), names)
        if echo and not return_ids:
            choice["text"] = self._text(made.prompt) + self._text(ids)
        if return_ids:
            choice |= {"token_ids": made.ids, "prompt_token_ids": made.prompt}
        return choice

    def _sglang_choice(self, made: Made, body: Mapping[str, Any], echo: bool) -> dict[str, Any]:
        choice: dict[str, Any] = {}
        asked = body.get("logprobs")
        if echo:
            choice["text"] = self._text(made.prompt) + self._text(made.ids)
        if asked is not None:
            first = [(made.prompt[0], None)] if echo and asked else []
            scored = self._scored(made) if echo and asked else []
            behind = list(zip(made.ids, made.rows, strict=True))
            choice["logprobs"] = _legacy([*first, *scored, *behind], int(asked), self._latin, best_only=True)
            choice["logprobs"]["text_offset"] = [-1] * len(choice["logprobs"]["tokens"])
        if body.get("return_token_ids"):
            choice |= {"token_ids": made.ids, "prompt_token_ids": made.prompt}
        return choice

    def _misaligned(self, made: Made, top: int, echo: bool) -> dict[str, Any]:
        """Tokens beside rows as llama-cpp-python pairs them: with a BOS rightly, without one a row late."""
        whole = [*made.prompt, *made.ids]
        if not echo:
            return _legacy(list(zip(made.ids, made.rows, strict=True)), top, self._name)
        rows = [self.logprobs(whole[: i + 1]) for i in range(len(whole) - 1)]
        tokens = whole[1:] if whole[0] == self.bos_id else whole
        pairs = list(zip(tokens, rows, strict=False))
        return _legacy([(pairs[0][0], None), *pairs[1:]], top, self._name)

    def _mlx_rows(self, ids: list[int], rows: list[np.ndarray], body: Mapping[str, Any]) -> dict[str, Any] | None:
        top = int(_or(body.get("top_logprobs"), -1))
        if top > 0:
            return {"content": [self._shuffled(r, top) for r in rows]}
        if body.get("logprobs"):
            return {"content": [{"id": i, "logprob": _finite(r[i])} for i, r in zip(ids, rows, strict=True)]}
        return None

    def _shuffled(self, row: np.ndarray, top: int) -> dict[str, Any]:
        """The first of an unsorted partition, not the sampled token, stands where the token should."""
        best = [self._content(i, row, 0, with_top=False) for i in reversed(_best(row, top))]
        return {**best[0], "top_logprobs": best}

    def _content(self, token_id: int, row: np.ndarray, top: int, with_top: bool = True) -> dict[str, Any]:
        raw = self.tokenizer.token_bytes(token_id)
        entry: dict[str, Any] = {
            "id": token_id,
            "token": self._name(token_id),
            "bytes": list(raw),
            "logprob": _finite(row[token_id], -3.4028234663852886e38),
        }
        if with_top:
            entry["top_logprobs"] = [self._content(i, row, 0, with_top=False) for i in _best(row, top)]
        return entry

    def _by_character(self, ids: list[int], rows: list[np.ndarray], top: int) -> list[dict[str, Any]]:
        """As llama-server does: a row for a whole character, with the id of its last token; none for a part."""
        content, held = [], b""
        for token_id, row in zip(ids, rows, strict=True):
            held += self.tokenizer.token_bytes(token_id)
            if _cut(held):
                continue
            words = {"token": held.decode(errors="replace"), "bytes": list(held)}
            content.append(self._content(token_id, row, top) | words)
            held = b""
        return content

    def _ranked(self, token_id: int, row: np.ndarray, top: int) -> dict[str, Any]:
        """vLLM's prompt_logprobs: the token itself first, then the best."""
        ids = dict.fromkeys([token_id, *_best(row, top)])
        order = {i: rank + 1 for rank, i in enumerate(_best(row, len(row)))}
        return {str(i): {"logprob": _finite(row[i]), "rank": order[i], "decoded_token": self._name(i)} for i in ids}

    def _scored(self, made: Made) -> list[tuple[int, np.ndarray]]:
        """Every prompt token but the first, with the row that it stands in; always before temperature."""
        return [(made.prompt[i], self.logprobs(made.prompt[:i])) for i in range(1, len(made.prompt))]

    # llama-server's own endpoint.

    def _llamacpp_native(self, body: Mapping[str, Any]) -> Any:
        """A list for several continuations, else the one alone; fields that were not asked for are left out."""
        prompts = self._prompts(body.get("prompt"))
        budget, samples = max(1, int(_or(body.get("n_predict"), 16))), int(_or(body.get("n"), 1))
        made = [self._continue(p, body, budget) for p in prompts for _ in range(samples)]
        answers = [self._llamacpp_one(i, m, body) for i, m in enumerate(made)]
        return answers if len(answers) > 1 else answers[0]

    def _llamacpp_one(self, index: int, made: Made, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = {
            "index": index,
            "content": self._text(made.ids),
            "tokens": made.ids if body.get("return_tokens") else [],
            "stop": True,
            "model": self.name,
            "prompt": self._text(made.prompt),
            "stop_type": "eos" if made.finish == "stop" else "limit",
            "tokens_predicted": len(made.ids),
            "tokens_evaluated": len(made.prompt),
            "tokens_cached": len(made.prompt) + len(made.ids) - 1,
            "timings": {"cache_n": 0, "prompt_n": len(made.prompt), "prompt_ms": 2.0, "predicted_ms": 1.0},
        }
        top = int(_or(body.get("n_probs"), 0))
        content = self._by_character(made.ids, made.rows, top) if top else []
        if content:
            answer["completion_probabilities"] = content
        wanted = body.get("response_fields")
        return {k: v for k, v in answer.items() if not wanted or k in wanted}

    # SGLang's own endpoint.

    def _native(self, body: Mapping[str, Any]) -> Any:
        given = body.get("input_ids", body.get("text"))
        prompts = self._prompts(given)
        several = isinstance(given, list) and bool(given) and not isinstance(given[0], int)
        params = dict(body.get("sampling_params") or {})
        budget, samples = int(_or(params.get("max_new_tokens"), 128)), int(_or(params.get("n"), 1))
        made = [self._continue(p, params, budget) for p in prompts for _ in range(samples)]
        starts = body.get("logprob_start_len", -1)
        starts = starts if isinstance(starts, list) else [starts] * len(prompts)
        answers = [self._native_one(m, body, starts[at // samples]) for at, m in enumerate(made)]
        return answers if several or samples > 1 else answers[0]

    def _native_one(self, made: Made, body: Mapping[str, Any], start: int) -> dict[str, Any]:
        meta: dict[str, Any] = {
            "id": "1",
            "finish_reason": {"type": made.finish, "length": len(made.ids)},
            "prompt_tokens": len(made.prompt),
            "completion_tokens": len(made.ids),
            "cached_tokens": 0,
            "e2e_latency": 0.01,
        }
        if body.get("return_logprob"):
            meta |= self._native_rows(made, body, start)
        return {"text": self._text(made.ids), "output_ids": made.ids, "meta_info": meta}

    def _native_rows(self, made: Made, body: Mapping[str, Any], start: int) -> dict[str, Any]:
        top = int(_or(body.get("top_logprobs_num"), 0))
        words = bool(body.get("return_text_in_logprobs"))
        start = len(made.prompt) - 1 if start < 0 else start
        scored = [(made.prompt[i], self.logprobs(made.prompt[:i])) for i in range(start + 1, len(made.prompt))]
        behind = list(zip(made.ids, made.rows, strict=True))

        def entry(i: int, row: np.ndarray | None) -> list[Any]:
            return [None if row is None else _finite(row[i]), i, self._latin(i) if words else None]

        def best(row: np.ndarray) -> list[list[Any]]:
            return [entry(i, row) for i in _best(row, top)]

        rows: dict[str, list[list[Any] | None]] = {
            "input_token_logprobs": [entry(made.prompt[start], None), *(entry(i, r) for i, r in scored)],
            "output_token_logprobs": [entry(i, r) for i, r in behind],
        }
        if top:
            rows |= {
                "input_top_logprobs": [None, *(best(r) for _, r in scored)],
                "output_top_logprobs": [best(r) for _, r in behind],
            }
        return rows

    # Streams.

    def _chunks(self, body: Mapping[str, Any], whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
        head = {k: whole[k] for k in ("id", "object", "created", "model")}
        for choice in whole["choices"]:
            text = choice["text"]
            for i, letter in enumerate(text or [""]):
                last = i + 1 >= len(text)
                part = {"index": choice["index"], "text": letter, "logprobs": None}
                yield head | {"choices": [part | {"finish_reason": choice["finish_reason"] if last else None}]}
        if (body.get("stream_options") or {}).get("include_usage"):
            yield head | {"choices": [], "usage": whole["usage"]}

    def _grown(self, body: Mapping[str, Any], whole: Any) -> Iterator[dict[str, Any]]:
        """SGLang's own stream: every event holds all so far."""
        for one in whole if isinstance(whole, list) else [whole]:
            ids = one["output_ids"]
            for n in range(1, len(ids) + 1):
                finish = one["meta_info"]["finish_reason"] if n == len(ids) else None
                meta = {**one["meta_info"], "completion_tokens": n, "finish_reason": finish}
                yield {"text": self._text(ids[:n]), "output_ids": ids[:n], "meta_info": meta}

    # Small things.

    def _text(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode([i for i in ids if i not in self.stop_ids])

    def _name(self, token_id: int) -> str:
        """As most servers write a token: a part of a character becomes nothing, so that several share one key."""
        raw = self.tokenizer.token_bytes(token_id)
        return raw.decode("utf-8", errors="ignore") if raw else self.tokenizer.token_name(token_id)

    def _latin(self, token_id: int) -> str:
        """As SGLang does: a part of a character byte for byte."""
        raw = self.tokenizer.token_bytes(token_id)
        try:
            return raw.decode() if raw else self.tokenizer.token_name(token_id)
        except UnicodeDecodeError:
            return raw.decode("latin-1")

    def _card(self) -> dict[str, Any]:
        owners = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp", "llama-cpp-python": "me"}
        card: dict[str, Any] = {"id": self.name, "object": "model", "created": 1795842606}
        if self.dialect in owners:
            card["owned_by"] = owners[self.dialect]
        if self.dialect in ("vllm", "sglang"):
            card["max_model_len"] = self.max_context
        if self.dialect == "llamacpp":
            card["meta"] = {"n_vocab": self.vocab_size, "n_ctx": self.max_context, "n_ctx_train": self.max_context}
        return card

    def _error(self, status: int, message: str) -> dict[str, Any]:
        if self.dialect == "mlx":
            return {"error": message}
        if self.dialect == "sglang":
            return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": status}
        return {"error": {"message": message, "type": "BadRequestError", "param": None, "code": status}}


def _scorer(model: Any) -> Scorer:
    if hasattr(model, "score"):
        return model  # type: ignore[no-any-return]
    return MarkovScorer(model) if np.ndim(model) == 2 else FixedScorer(model)


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max()
    with np.errstate(divide="ignore"):
        logprobs: np.ndarray = shifted - np.log(np.exp(shifted).sum())
    return logprobs


def _best(row: np.ndarray, n: int) -> list[int]:
    return [int(i) for i in np.argsort(-row, kind="stable")[:n]]


def _cut(data: bytes) -> bool:
    """Whether bytes end inside a character."""
    try:
        data.decode()
    except UnicodeDecodeError as exc:
        return exc.reason == "unexpected end of data"
    return False


def _finite(value: float, floor: float = -9999.0) -> float:
    """JSON has no -inf: servers write a large number."""
    return max(float(value), floor)


def _legacy(
    entries: Sequence[tuple[int, np.ndarray | None]], top: int, name: Any, best_only: bool = False
) -> dict[str, Any]:
    """The lists of the completions API; top_logprobs is a dict by name, so equal names fall together."""
    tokens, values, tops, offsets, at = [], [], [], [], 0
    for i, row in entries:
        tokens.append(name(i))
        values.append(None if row is None else _finite(row[i]))
        listed = [] if row is None else [*([] if best_only else [i]), *_best(row, top)]
        tops.append(None if row is None else {name(j): _finite(row[j]) for j in listed})
        offsets.append(at)
        at += len(tokens[-1])
    return {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets}


def _events(chunks: Iterator[dict[str, Any]]) -> Iterator[str]:
    for chunk in chunks:
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


# With a socket.


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes; without this every answer would wait 40 ms for an acknowledgement.
    disable_nagle_algorithm = True
    toy: ToyServer

    def do_GET(self) -> None:
        if self._allowed():
            self._json(*self.toy.get(self.path.partition("?")[0]))

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self._allowed():
            return
        try:
            body = json.loads(data)
        except ValueError:
            self._json(400, {"error": {"message": "not JSON"}})
            return
        path = self.path.partition("?")[0]
        if not body.get("stream"):
            self._json(*self.toy.answer(path, body))
            return
        status, lines = self.toy.stream(path, body)
        if status != 200:
            self._json(status, lines)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            piece = line.encode()
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _allowed(self) -> bool:
        if not self.toy.key or self.headers.get("Authorization") == f"Bearer {self.toy.key}":
            return True
        self._json(401, self.toy._error(401, "Unauthorized"))
        return False

    def _json(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self, handler: type[_Handler]) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        self._open.discard(request)
        super().close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error of the server's."""

    def close_all(self) -> None:
        for request in list(self._open):
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)


@contextmanager
def serve(toy: ToyServer) -> Iterator[str]:
    """The base URL, ending in /v1, while the server runs on a free port of the loopback."""
    server = _Server(type("Handler", (_Handler,), {"toy": toy}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="toyserver")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join(10)
        server.close_all()
        server.server_close()


# Without one.


class InMemory:
    """The API without a socket: requests in the words of the real dialect, replies as JSON would bring them."""

    def __init__(self, toy: ToyServer) -> None:
        self.toy = toy
        #: Every request that was made, before it was put in a dialect.
        self.requests: list[Request] = []

    def complete(self, request: Request, *, engine: Engine = "") -> Reply:
        self.requests.append(request)
        path, body = _words(request, self.toy.name, engine)
        return _reply(*self.toy.answer(path, _wire(body)), sent=body)

    def stream(self, request: Request, *, engine: Engine = "") -> Iterator[Piece]:
        self.requests.append(request)
        from specviz.targets.completions.wire import dialect

        body = dialect.stream_body(request, self.toy.name, engine)
        status, lines = self.toy.stream("/v1/completions", _wire(body))
        if status != 200:
            _reply(status, lines, sent=body)
        for line in lines:
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    yield Piece(time.perf_counter(), choice["text"], None)

    def get(self, path: str) -> Reply:
        return _reply(*self.toy.get(path if path.startswith("/") else f"/v1/{path}"), sent={})


def _words(request: Request, model: str, engine: Engine) -> tuple[str, dict[str, Any]]:
    from specviz.targets.completions.wire import dialect

    path, body = dialect.call(request, model, engine)
    return path if path.startswith("/") else f"/v1/{path}", body


def _wire(body: Any) -> Any:
    return json.loads(json.dumps(body))


def _reply(status: int, body: Any, sent: Any) -> Reply:
    """What the transport gives or raises for a status."""
    text = json.dumps(body)
    if status == 200:
        return Reply(_wire(body), {}, 1.0, 0.0, len(json.dumps(sent)), len(text))
    if status in (408, 409, 429) or status >= 500:
        raise UnreachableError(f"The server answered {status}: {text[:200]}", "Try again later.", status=status)
    if status < 400:
        raise AnswerError(f"The server answered {status}.")
    raise RefusedError(f"The server refused the request ({status}): {text[:200]}", "See what it says.", status=status)
