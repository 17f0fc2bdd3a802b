"""The values that pass between the parts of a completions target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from specviz.core.events import Way

#: Token ids, or a text where the server takes no ids.
Prompt = tuple[int, ...] | str

#: What runs the model behind the API; "" is any other. What it can do is judged by its answers, never by this name.
Engine = Literal["vllm", "sglang", "llamacpp", "llama-cpp-python", "mlx", "cerebras", "fireworks", "together", ""]


@dataclass(frozen=True, slots=True)
class Request:
    """One call, the same for every server; `dialect` makes each server's own JSON of it.

    Attributes:
        prompts: one, or a batch.
        max_tokens: to generate after each prompt, at least 1.
        temperature, top_k, top_p: of what is generated; 0 and 1.0 mean off, as in `settings.Sampling`.
        samples: how many independent continuations of each prompt.
        top: how many of the most probable tokens to return per position; None for no log-probabilities at all.
        echo: return log-probabilities of the prompt's tokens too.
        tail: how many of the prompt's last tokens need log-probabilities, where a server can leave out the others.
        seed: None for the server's own randomness. Only for one prompt and one sample: a server may use the seed for
            every row of a batch, and rows that are drawn with the same noise are not independent.
        past_stop: go on where the model ends its answer, if the server can.
    """

    prompts: tuple[Prompt, ...]
    max_tokens: int = 1
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    samples: int = 1
    top: int | None = None
    echo: bool = False
    tail: int | None = None
    seed: int | None = None
    past_stop: bool = False

    def __post_init__(self) -> None:
        if self.seed is not None and (len(self.prompts) > 1 or self.samples > 1):
            raise ValueError("a seed may not be shared by several rows: their draws would not be independent")


@dataclass(frozen=True, slots=True)
class Reply:
    """The unread answer to a request.

    Attributes:
        body: parsed JSON, of any shape.
        headers: of the answer, with lower-case names.
        call_ms: from sending to the last byte of the successful attempt.
        waited_ms: failed attempts and the pauses after them.
        sent_bytes, received_bytes: sizes of the bodies of all attempts.
        attempts: how many requests were sent; failed ones may have been billed too.
    """

    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    call_ms: float = 0.0
    waited_ms: float = 0.0
    sent_bytes: int = 0
    received_bytes: int = 0
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a streamed answer.

    Attributes:
        at: when it came, in seconds of `time.perf_counter`. tokens: how many it holds; None where that is not known.
    """

    at: float
    text: str
    tokens: int | None


class Completions(Protocol):
    """A server's completions API. Errors are those of `specviz.core.errors`; a stop raises `StoppedError`."""

    def complete(self, request: Request, *, engine: Engine = "") -> Reply:
        """One call to the completions endpoint, or to the engine's own, repeated while that may help."""
        ...

    def stream(self, request: Request, *, engine: Engine = "") -> Iterator[Piece]:
        """The same as a stream, for one prompt; closing the iterator closes the connection."""
        ...

    def get(self, path: str) -> Reply:
        """GET a path below the server's root, such as "/version", or below the base URL: "models"."""
        ...


@dataclass(frozen=True, slots=True)
class Likely:
    """One of the most probable tokens of a position. `token_id` is None where the server gives texts only."""

    token_id: int | None
    text: str
    logprob: float


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """One token of an answer, of the prompt or generated.

    Attributes:
        token_id: None where the server gives no ids. text: as the server writes the token.
        logprob: natural logarithm; None for the first token of a prompt, and where the server gave none.
        top: the most probable tokens of the position, best first; the token itself may be among them.
    """

    token_id: int | None
    text: str
    logprob: float | None
    top: tuple[Likely, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One continuation.

    Attributes:
        text: the generated text, without the prompt.
        rows: the generated tokens; () where no log-probabilities were requested or given.
        prompt: the prompt's last tokens, as many as were requested and given; () without echo.
        token_ids: the generated ids; None where the server does not give them in any form.
    """

    text: str
    rows: tuple[ScoredToken, ...] = ()
    prompt: tuple[ScoredToken, ...] = ()
    token_ids: tuple[int, ...] | None = None
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the server counts them; None where it does not."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that was read and checked.

    Attributes:
        choices: in the order of the prompts, and of the samples within each.
        queue_ms, compute_ms: None where the server does not give them.
    """

    choices: tuple[Choice, ...]
    usage: Usage = Usage()
    queue_ms: float | None = None
    compute_ms: float | None = None
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a server can do, as a few calls showed.

    Attributes:
        engine, version: as the server names them. model: as it was asked for. answers_as: as the server's answers name
            it; where they name none, another model that is the only one in the server's list; else empty.
            max_context: in tokens; None where it does not say.
        ids_in: it takes token ids as a prompt, unchanged. ids_out: it gives the ids of what it generated.
        batch: it takes several prompts in one call. scores: it gives the log-probabilities of given tokens.
        top: how many of the most probable tokens per position it gives; 0 for none.
        after_temperature: its log-probabilities of generated tokens are after the temperature; None where unknown.
        bos_added: it puts a BOS before a text.
        same_tokens: our tokenizer gives the same ids and counts as the server.
        takes_top_k: it samples with the requested top-k; None where unknown.
        own_samplers: it has samplers that requests could not switch off, so they may be on.
        latency_ms: of the fastest call. calls: how many the probe made.
        notes: what was tried and what was found, in sentences for a person.
    """

    engine: Engine = ""
    version: str = ""
    model: str = ""
    max_context: int | None = None
    ids_in: bool = False
    ids_out: bool = False
    batch: bool = False
    scores: bool = False
    top: int = 0
    after_temperature: bool | None = None
    bos_added: bool = False
    same_tokens: bool = True
    takes_top_k: bool | None = None
    own_samplers: bool = False
    latency_ms: float | None = None
    calls: int = 0
    notes: tuple[str, ...] = ()
    answers_as: str = ""

    @property
    def identity(self) -> str:
        """What the server says it is: engine, version and the model of its answers; empty where it says nothing."""
        return ", ".join(filter(None, (f"{self.engine} {self.version}".strip(), self.answers_as)))

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways to verify that it supports, first the one that accepts most."""
        able = (("scoring", self.scores and self.ids_in), ("prefixes", self.batch), ("generating", True))
        return tuple(way for way, can in able if can)  # type: ignore[misc]
