"""What the probe finds out about each kind of server, and with how many calls."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specviz.core.errors import RefusedError, RemoteError, UnreachableError
from specviz.engines.toy import ToyScorer, ToyTokenizer
from specviz.targets.completions.probe.probe import ProbeCache, probe
from specviz.targets.completions.values import Engine, Findings, Piece, Reply, Request
from tests.targets.completions.mutations import mutate
from tests.targets.completions.toyserver import DIALECTS, InMemory, ToyServer

TOKENS = ToyTokenizer()


def server(dialect: str = "vllm", **options: Any) -> InMemory:
    return InMemory(ToyServer(ToyScorer(TOKENS), dialect, TOKENS, **options))


def found(api: Any) -> Findings:
    return probe(api, "toy", TOKENS.encode, TOKENS.decode)


class Changed:
    """A server whose answers are changed before they are read."""

    def __init__(self, inner: InMemory, change: Callable[[Request, Any], Any]) -> None:
        self._inner, self._change = inner, change

    def complete(self, request: Request, *, engine: Engine = "") -> Reply:
        reply = self._inner.complete(request, engine=engine)
        return replace(reply, body=self._change(request, copy.deepcopy(reply.body)))

    def stream(self, request: Request, *, engine: Engine = "") -> Iterator[Piece]:
        return self._inner.stream(request, engine=engine)

    def get(self, path: str) -> Reply:
        return self._inner.get(path)


WHOLE = {"ids_in": True, "ids_out": True, "batch": True, "top": 20, "same_tokens": True, "takes_top_k": True}
TEXT = {"ids_in": False, "batch": False, "scores": False, "top": 0, "same_tokens": True}
EXPECTED: dict[str, dict[str, Any]] = {
    "vllm": WHOLE | {"engine": "vllm", "version": "0.32.0", "scores": True, "after_temperature": False},
    "sglang": WHOLE | {"engine": "sglang", "version": "0.5.23", "scores": True, "after_temperature": True},
    "llamacpp": WHOLE | {"engine": "llamacpp", "scores": False, "after_temperature": False, "max_context": 4096},
    "llama-cpp-python": TEXT | {"engine": "llama-cpp-python", "ids_out": False, "takes_top_k": True},
    "mlx": TEXT | {"engine": "mlx", "ids_out": True, "after_temperature": False, "takes_top_k": True},
    "generates": TEXT | {"engine": "", "ids_out": False, "after_temperature": None, "takes_top_k": False},
}
WAYS = {
    "vllm": ("scoring", "prefixes", "generating"),
    "sglang": ("scoring", "prefixes", "generating"),
    "llamacpp": ("prefixes", "generating"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_server(dialect: str) -> None:
    findings = found(server(dialect))
    assert {name: getattr(findings, name) for name in EXPECTED[dialect]} == EXPECTED[dialect]
    assert findings.ways == WAYS.get(dialect, ("generating",))
    assert findings.model == "toy" and findings.latency_ms == 1.0 and not findings.bos_added
    assert all(note.endswith(".") and len(note) < 300 for note in findings.notes)


@pytest.mark.parametrize("dialect", ["vllm", "sglang", "llamacpp"])
def test_two_calls_are_enough_for_a_server_that_can_do_everything(dialect: str) -> None:
    api = server(dialect)
    findings = found(api)
    assert len(api.requests) == 2 and all(r.max_tokens == 1 and r.seed is None for r in api.requests)
    assert findings.calls == 2 + len(api.toy.fetched)


@pytest.mark.parametrize("dialect", ["llama-cpp-python", "mlx", "generates"])
def test_other_servers_need_a_few_calls_more(dialect: str) -> None:
    assert found(server(dialect)).calls <= 16


def test_mlx_is_never_sent_a_list() -> None:
    """A list ends its generating thread."""
    api = server("mlx")
    assert found(api).engine == "mlx" and not api.toy.dead
    texts = {body["prompt"] for _, body in api.toy.requests[1:]}
    assert all(isinstance(text, str) for text in texts)
    # Nor a text that it may have in its cache.
    assert not any(one != other and one.startswith(other) for one in texts for other in texts)


def note(findings: Findings, part: str) -> str:
    return next(n for n in findings.notes if part in n)


def test_echo_that_is_ignored_is_no_score() -> None:
    """Reported as llama.cpp#27174."""

    def ignore(request: Request, body: Any) -> Any:
        silent = replace(request, echo=False)
        return server().complete(silent, engine="vllm").body

    findings = found(Changed(server(), ignore))
    assert not findings.scores and findings.batch and findings.ids_in and findings.top == 20
    assert "lacks log-probabilities of the prompt" in note(findings, "does not score")


def test_rows_that_belong_to_other_tokens_are_caught() -> None:
    """As llama-cpp-python#1983, but with no row missing: only their values are wrong."""

    def shift(request: Request, body: Any) -> Any:
        for choice in body["choices"] if request.echo else ():
            rows = choice["logprobs"]
            own = list(zip(rows["token_logprobs"], rows["top_logprobs"], strict=True))[1:]
            for i, (value, top) in enumerate([*own[1:-1], own[0]], 1):
                token = rows["tokens"][i]
                kept = {k: v for k, v in top.items() if v != value and k != token}
                best = min(kept.values(), default=-1.0)
                rows["token_logprobs"][i] = best - 1
                rows["top_logprobs"][i] = kept | {token: best - 1}
            choice["prompt_logprobs"] = None
        return body

    findings = found(Changed(server(), shift))
    assert not findings.scores and findings.ways == ("prefixes", "generating")
    assert note(findings, "belong to other tokens")


def test_llama_cpp_python_scores_only_with_a_bos() -> None:
    right = found(server("llama-cpp-python", bos_id=TOKENS.end_id))
    assert right.scores and right.bos_added and right.same_tokens and "scoring" not in right.ways
    assert not found(server("llama-cpp-python")).scores


def test_all_zeros_are_no_score() -> None:
    """Reported as vllm#17876."""

    def zero(request: Request, body: Any) -> Any:
        for choice in body["choices"] if request.echo else ():
            rows = choice["logprobs"]
            rows["token_logprobs"] = [None, *[0.0] * (len(rows["tokens"]) - 1)]
            rows["top_logprobs"] = None
        return body

    findings = found(Changed(server(), zero))
    assert not findings.scores and findings.batch and findings.ids_in
    assert "every log-probability is 0" in note(findings, "does not score")


@pytest.mark.parametrize(("cap", "top"), [(5, 5), (7, 5), (1, 1)])
def test_fewer_alternatives(cap: int, top: int) -> None:
    findings = found(server(top_cap=cap))
    assert findings.top == top and findings.scores and findings.batch and findings.ids_in


@pytest.mark.parametrize("dialect", ["vllm", "llamacpp", "mlx"])
def test_log_probabilities_after_the_temperature(dialect: str) -> None:
    """Reported as ollama#16196."""
    assert found(server(dialect, processed=True)).after_temperature is True
    assert found(server(dialect, processed=False)).after_temperature is False


@pytest.mark.parametrize("limit", [1.5, 1.0])
def test_a_server_that_takes_no_high_temperature(limit: float) -> None:
    class Cool(ToyServer):
        def answer(self, path: str, body: Any) -> tuple[int, Any]:
            if body.get("temperature", 0) > limit:
                return 400, self._error(400, "temperature too high")
            return super().answer(path, body)

    findings = found(InMemory(Cool(ToyScorer(TOKENS), "vllm", TOKENS)))
    assert findings.scores and findings.after_temperature is (False if limit == 1.5 else None)


def test_a_batch_is_not_taken() -> None:
    class Single(ToyServer):
        def answer(self, path: str, body: Any) -> tuple[int, Any]:
            if isinstance(body["prompt"], list) and isinstance(body["prompt"][0], list):
                return 400, self._error(400, "one prompt only")
            return super().answer(path, body)

    findings = found(InMemory(Single(ToyScorer(TOKENS), "vllm", TOKENS)))
    assert findings.scores and findings.ids_in and not findings.batch and findings.takes_top_k
    assert findings.ways == ("scoring", "generating")


def test_only_the_first_prompt_of_a_batch_is_answered() -> None:
    def first(request: Request, body: Any) -> Any:
        return body | {"choices": body["choices"][:1]}

    findings = found(Changed(server(), first))
    assert not findings.batch and findings.ids_in and findings.scores


def test_ids_that_are_read_as_something_else_are_not_sent() -> None:
    def count(request: Request, body: Any) -> Any:
        """As a server that takes the list as text and encodes that."""
        wrong = isinstance(request.prompts[0], tuple)
        return body | {"usage": {"prompt_tokens": 99, "completion_tokens": 1}} if wrong else body

    plain = InMemory(ToyServer(ToyScorer(TOKENS), "vllm", TOKENS))
    findings = found(Changed(plain, lambda r, b: count(r, _without_rows(b))))
    assert not findings.ids_in and findings.batch and findings.same_tokens


def _without_rows(body: Any) -> Any:
    for choice in body["choices"]:
        choice |= {"logprobs": None, "prompt_logprobs": None, "prompt_token_ids": None}
    return body


def test_a_proxy_that_passes_only_the_completions_api() -> None:
    class Proxied(ToyServer):
        def answer(self, path: str, body: Any) -> tuple[int, Any]:
            return super().answer(path, body) if path.endswith("/completions") else (404, {"detail": "Not Found"})

    findings = found(InMemory(Proxied(ToyScorer(TOKENS), "sglang", TOKENS)))
    assert findings.engine == "" and findings.batch and findings.ids_in and findings.own_samplers
    assert note(findings, "Only its completions API")


# The tokenizer.


class Shifted:
    """Other ids for the same texts."""

    def encode(self, text: str) -> list[int]:
        return [(i + 1) % TOKENS.vocab_size for i in TOKENS.encode(text)]

    def decode(self, ids: Any) -> str:
        return TOKENS.decode([(i - 1) % TOKENS.vocab_size for i in ids])


class Letters:
    """One token per byte: another number of tokens."""

    def encode(self, text: str) -> list[int]:
        return [TOKENS.end_id + 1 + b for b in text.encode()]

    def decode(self, ids: Any) -> str:
        return TOKENS.decode(ids)


@pytest.mark.parametrize("dialect", ["vllm", "sglang", "llamacpp", "mlx"])
def test_another_tokenizer_is_seen_by_the_ids(dialect: str) -> None:
    other = Shifted()
    assert not probe(server(dialect), "toy", other.encode, other.decode).same_tokens


@pytest.mark.parametrize("dialect", ["mlx", "generates", "llama-cpp-python"])
def test_another_tokenizer_is_seen_by_the_count(dialect: str) -> None:
    other = Letters()
    findings = probe(server(dialect), "toy", other.encode, other.decode)
    assert not findings.same_tokens and findings.ways == ("generating",)


def test_without_evidence_the_tokens_do_not_count_as_the_same() -> None:
    def silent(request: Request, body: Any) -> Any:
        return body | {"usage": None}

    findings = found(Changed(server("generates"), silent))
    assert not findings.same_tokens and note(findings, "could not be seen")


def test_a_tokenizer_without_words_is_refused() -> None:
    with pytest.raises(RemoteError, match="tokens of a plain sentence"):
        probe(server(), "toy", lambda text: [1, 2], TOKENS.decode)


# Faults.


@pytest.mark.parametrize("status", [401, 403, 429])
@pytest.mark.parametrize("before", [0, 1])
def test_a_refused_key_and_a_busy_server_are_no_finding(status: int, before: int) -> None:
    class Locked(ToyServer):
        def answer(self, path: str, body: Any) -> tuple[int, Any]:
            return super().answer(path, body) if len(self.requests) < before else (status, {"error": "no"})

    with pytest.raises(RemoteError) as caught:
        found(InMemory(Locked(ToyScorer(TOKENS), "vllm", TOKENS)))
    assert caught.value.status == status


def test_an_unknown_model_is_an_error() -> None:
    api = server()
    api.toy.name = "other"

    class Named(InMemory):
        def complete(self, request: Request, *, engine: Engine = "") -> Reply:
            raise RefusedError("There is no such model (404).", "Check its name.", 404)

    with pytest.raises(RefusedError, match="no such model"):
        found(Named(api.toy))


@pytest.mark.parametrize("error", [UnreachableError("Nothing answers.", ""), UnreachableError("Busy.", "", 503)])
def test_a_server_that_is_not_there(error: RemoteError) -> None:
    class Gone(InMemory):
        def get(self, path: str) -> Reply:
            raise error

    with pytest.raises(UnreachableError):
        found(Gone(server().toy))


def test_a_server_that_fails_at_what_it_cannot_do() -> None:
    class Fails(ToyServer):
        def answer(self, path: str, body: Any) -> tuple[int, Any]:
            return (500, {"error": "KeyError"}) if body.get("echo") else super().answer(path, body)

    findings = found(InMemory(Fails(ToyScorer(TOKENS), "vllm", TOKENS)))
    assert not findings.scores and findings.batch and findings.ids_in and findings.top == 20
    assert "500" in note(findings, "does not score")


GETS = {path: server().get(path) for path in ("models", "/version")}


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_answers_end_in_findings_or_in_one_of_our_errors(data: st.DataObject) -> None:
    class Liar(Changed):
        def get(self, path: str) -> Reply:
            reply = GETS[path] if path in GETS else super().get(path)
            return replace(reply, body=mutate(copy.deepcopy(reply.body), data.draw))

    def lie(request: Request, body: Any) -> Any:
        return mutate(body, data.draw) if data.draw(st.integers(0, 2)) else body

    dialect = data.draw(st.sampled_from(["vllm", "mlx", "generates"]))
    try:
        findings = found(Liar(server(dialect), lie))
    except RemoteError as exc:
        assert exc.message and len(exc.message) < 400
        return
    assert "generating" in findings.ways and 0 <= findings.top <= 20


# The cache.


def test_findings_are_kept_per_address_model_version_and_tokenizer() -> None:
    cache, api = ProbeCache(), server()
    first = cache.findings(api, "http://127.0.0.1:1/v1", "toy", TOKENS)
    assert cache.findings(api, "http://127.0.0.1:1/v1", "toy", TOKENS) is first and len(api.requests) == 2
    cache.findings(api, "http://127.0.0.1:2/v1", "toy", TOKENS)
    assert len(api.requests) == 4


def test_another_version_is_probed_again() -> None:
    cache, api = ProbeCache(), server()
    cache.findings(api, "http://127.0.0.1:1/v1", "toy", TOKENS)

    class Newer(InMemory):
        def get(self, path: str) -> Reply:
            return replace(super().get(path), body={"version": "9"}) if path == "/version" else super().get(path)

    newer = Newer(api.toy)
    assert cache.findings(newer, "http://127.0.0.1:1/v1", "toy", TOKENS).version == "9" and newer.requests


def test_a_model_that_the_server_does_not_list_is_said() -> None:
    api = server()
    listed = [{"id": name, "owned_by": "vllm"} for name in ("a\x1b[31mb", "c", "d", "e")]
    api.toy.get = lambda path: (200, {"data": listed})  # type: ignore[method-assign]
    (note,) = [n for n in found(api).notes if "list of models" in n]
    assert note == "Its list of models has no toy: it has a[31mb, c, d, ….", note
    listed.append({"id": "an-org/Toy"})
    assert not [n for n in found(api).notes if "list of models" in n]


def test_the_only_model_of_a_server_is_the_one_that_answers() -> None:
    """llama-server takes any name for the model that it has, and its own endpoint names none."""
    api = server("llamacpp")
    api.toy.get = lambda path: (200, {"data": [{"id": "other", "owned_by": "llamacpp"}]})  # type: ignore[method-assign]
    findings = found(api)
    assert findings.answers_as == "other" and note(findings, "toy and answers as other")
    api.toy.get = lambda path: (200, {"data": [{"id": "toy", "owned_by": "llamacpp"}]})  # type: ignore[method-assign]
    assert found(api).answers_as == ""
