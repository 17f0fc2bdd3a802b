"""What passes between the parts of a remote target. Plain values; nothing here talks to anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from specviz.core.events import Way

#: Token ids, or a text where the server takes no ids.
Prompt = tuple[int, ...] | str

#: Judged by what it answers, never by its name alone. "" is any other server.
Engine = Literal["vllm", "sglang", "llamacpp", "llama-cpp-python", "mlx", "cerebras", "fireworks", "together", ""]


@dataclass(frozen=True, slots=True)
class Request:
    """One call, in our own words; `dialect.body` says it in the server's.

    Attributes:
        prompts: one, or a batch.
        max_tokens: to generate behind each, at least 1.
        temperature, top_k, top_p: of what is generated; 0 and 1.0 mean off, as in `settings.Sampling`.
        samples: how many independent continuations of each prompt.
        top: how many of the most probable tokens to return per position; None for no log-probabilities at all.
        echo: return log-probabilities of the prompt's tokens too.
        tail: how many of the prompt's last tokens need them, where a server can leave the others out.
        seed: None leaves the server's own randomness. Only for one prompt and one sample: a server may seed every row
            of a batch alike, and rows that are drawn with the same noise are not independent.
        past_stop: go on past the end of an answer, where the server can be told so.
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
    """What came back for a request, before anybody has read it.

    Attributes:
        body: parsed JSON, of any shape.
        headers: lower-case names; never those that were sent.
        call_ms: from sending to the last byte of the successful attempt.
        waited_ms: failed attempts and the pauses before repeating them.
        sent_bytes, received_bytes: bodies, of all attempts.
        attempts: how often it was sent; a failed attempt may have been billed all the same.
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
    """A part of a streamed answer, when it came.

    Attributes:
        at: seconds of `time.perf_counter`. tokens: how many tokens it brought; None where the server does not say.
    """

    at: float
    text: str
    tokens: int | None


class Completions(Protocol):
    """The API, as the rest sees it. Errors are those of `specviz.core.errors`; a stop raises `StoppedError`."""

    def complete(self, request: Request, *, engine: Engine = "") -> Reply:
        """One call to the completions endpoint, or the engine's own, repeated while that may help."""
        ...

    def stream(self, request: Request, *, engine: Engine = "") -> Iterator[Piece]:
        """The same for one prompt, streamed; closing the iterator closes the connection."""
        ...

    def get(self, path: str) -> Reply:
        """GET a path below the server's root, such as "/version", or below the base URL: "models"."""
        ...


@dataclass(frozen=True, slots=True)
class Likely:
    """One of the most probable tokens of a position. `token_id` None where the server gives texts only."""

    token_id: int | None
    text: str
    logprob: float


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """One token of an answer, of the prompt or generated.

    Attributes:
        token_id: None where the server gives no ids. text: as the server renders the token.
        logprob: natural log; None for a first token, and where the server gave none.
        top: most probable tokens here, best first; the token itself may stand among them.
    """

    token_id: int | None
    text: str
    logprob: float | None
    top: tuple[Likely, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One continuation.

    Attributes:
        prompt: rows of the prompt's tokens, as many of its last ones as the server gave; () without echo.
        rows: of the generated tokens; () where no log-probabilities were asked for or given.
        token_ids: generated ids, where the server says them one way or another; else None.
        text: what was generated, the prompt not in it.
    """

    text: str
    rows: tuple[ScoredToken, ...] = ()
    prompt: tuple[ScoredToken, ...] = ()
    token_ids: tuple[int, ...] | None = None
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the server counted, None where it did not."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that was read and found sound.

    Attributes:
        choices: in the order of the prompts, and of the samples within each.
        queue_ms, compute_ms: where the server says them.
    """

    choices: tuple[Choice, ...]
    usage: Usage = Usage()
    queue_ms: float | None = None
    compute_ms: float | None = None
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a server can do, as far as a few calls showed.

    Attributes:
        engine, version, model: what it says it is. max_context: tokens, where it says so.
        ids_in: takes token ids as a prompt, as they are. ids_out: says the ids of what it generated.
        batch: takes several prompts in one call. scores: gives the log-probabilities of given tokens.
        top: how many of the most probable tokens per position it gives, 0 for none.
        after_temperature: its log-probabilities of generated tokens are after the temperature; None where not tried.
        bos_added: puts a BOS in front of a text.
        same_tokens: the tokenizer that we have counts the server's tokens as the server does.
        takes_top_k: does as top_k says; None where not tried.
        own_samplers: it has samplers of its own that could not be named in requests, so they may be on.
        latency_ms: of the cheapest call. calls: how many the probe made.
        notes: what was tried and what came of it, in sentences for a person.
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

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways to verify that it can do, the one that accepts most first."""
        able = (("scoring", self.scores and self.ids_in), ("prefixes", self.batch), ("generating", True))
        return tuple(way for way, can in able if can)  # type: ignore[misc]
