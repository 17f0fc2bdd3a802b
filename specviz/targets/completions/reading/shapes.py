"""The JSON of every known server as types: msgspec checks that fields are there, their kinds and their ranges.

Its messages name what was expected and where, and never a value of the server's: that may be anything, even a key.
Rows of alternatives are not read here (`Any`): an echo brings one for every token of the context, and few are needed.
"""

from __future__ import annotations

from typing import Annotated, Any, NoReturn, TypeVar

import msgspec
from msgspec import Meta, Struct

from specviz.core.errors import AnswerError, LackingError

T = TypeVar("T")

REMEDY = "Run specviz doctor against the server; if it goes on, take another way to verify, or another server."
#: How far above 0 rounding can lift a log-probability, and how far above 1 a sum of probabilities.
LOGPROB_SLACK, SUM_SLACK = 1e-3, 2e-3

#: No vocabulary is larger.
ID_LIMIT = 2**31

Count = Annotated[int, Meta(ge=0, lt=2**53)]
TokenId = Annotated[int, Meta(ge=0, lt=ID_LIMIT)]
Logprob = Annotated[float, Meta(le=LOGPROB_SLACK)]
Byte = Annotated[int, Meta(ge=0, lt=256)]
#: Seconds or milliseconds.
Time = Annotated[float, Meta(ge=0, lt=1e9)]


def refuse(problem: str) -> NoReturn:
    """The answer holds what cannot be true.

    Raises:
        AnswerError: always.
    """
    raise AnswerError(f"The server's answer cannot be used: {problem}.", REMEDY)


def lacking(problem: str) -> NoReturn:
    """Something that was requested is missing; the rest of the answer is sound.

    Raises:
        LackingError: always.
    """
    raise LackingError(f"The server's answer lacks what was requested: {problem}.", REMEDY)


def shaped(value: object, kind: type[T]) -> T:
    """A JSON value as a type.

    Raises:
        AnswerError: it has another shape.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as exc:
        problem = str(exc)
    except UnicodeEncodeError:  # msgspec, where a text that is no Unicode stands in place of a number
        problem = "Expected Unicode"
    # msgspec names the type, which says nothing where the value is nan.
    problem = problem.replace(f"`float` <= {LOGPROB_SLACK}", "a log-probability, a number of at most 0,")
    refuse(problem[0].lower() + problem[1:])


def leniently(value: object, kind: type[T]) -> T:
    """The same for times: an empty value for another shape, since a wrong time is no reason to drop good tokens."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return kind()


# Log-probabilities.


class ContentRow(Struct):
    """The chat shape: a token with its log-probability, mostly its bytes, sometimes its id, and alternatives."""

    logprob: Logprob | None = None
    token: str = ""
    bytes: list[Byte] | None = None
    id: TokenId | None = None
    token_id: TokenId | None = None
    top_logprobs: Any = None

    @property
    def known_id(self) -> int | None:
        """The id under either of its names."""
        return self.token_id if self.id is None else self.id

    @property
    def text(self) -> str:
        """The bytes where they are whole characters; else the token as the server writes it."""
        try:
            return self.token if self.bytes is None else bytes(self.bytes).decode()
        except UnicodeDecodeError:
            return self.token


class DecodedToken(Struct):
    """An alternative by its id, in vLLM's prompt_logprobs."""

    logprob: Logprob
    decoded_token: str | None = None


#: SGLang's own shape: log-probability, id, text.
Triple = tuple[Logprob | None, TokenId, str | None]
#: Alternatives of one position: by text, `token_id:N` or id; or a list.
Alternatives = dict[str, Logprob | DecodedToken] | list[ContentRow | Triple] | None


class LogprobsJson(Struct):
    """`logprobs` of a choice: the legacy lists, to which Fireworks and Together add ids, or the chat shape."""

    content: list[ContentRow] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[Logprob | None] | None = None
    top_logprobs: list[Any] | None = None
    token_ids: list[TokenId] | None = None


# The completions API.


class CachedJson(Struct):
    """Beside the count of a prompt's tokens."""

    cached_tokens: Count | None = None


class UsageJson(Struct):
    """Tokens that the server counted."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: CachedJson | None = None


class EchoedJson(Struct):
    """A prompt that Together repeats beside the choices."""

    logprobs: LogprobsJson | None = None


class ChoiceJson(Struct):
    """A choice. vLLM and Fireworks name the generated ids in `token_ids`, Cerebras in `tokens`."""

    text: str
    index: Count | None = None
    finish_reason: str | None = None
    logprobs: LogprobsJson | None = None
    token_ids: list[TokenId] | None = None
    tokens: list[TokenId] | None = None
    prompt_token_ids: list[TokenId] | None = None
    prompt_logprobs: Any = None


class CompletionJson(Struct):
    """The whole answer."""

    choices: list[ChoiceJson]
    usage: UsageJson | None = None
    prompt: Any = None
    time_info: Any = None
    timings: Any = None
    system_fingerprint: Any = None


class TimeInfoJson(Struct):
    """Seconds, from Cerebras."""

    queue_time: Time | None = None
    prompt_time: Time | None = None
    completion_time: Time | None = None


class TimingsJson(Struct):
    """Milliseconds and reused tokens, from llama-server."""

    prompt_ms: Time | None = None
    predicted_ms: Time | None = None
    cache_n: Count | None = None


# Endpoints of the servers' own.


class FinishJson(Struct):
    """Why SGLang ended a continuation."""

    type: str | None = None


class MetaInfoJson(Struct):
    """SGLang's `meta_info` of a continuation."""

    finish_reason: FinishJson | str | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cached_tokens: Count | None = None
    input_token_logprobs: list[Triple] | None = None
    output_token_logprobs: list[Triple] | None = None
    input_top_logprobs: list[Any] | None = None
    output_top_logprobs: list[Any] | None = None


class GeneratedJson(Struct):
    """A continuation of SGLang's POST /generate."""

    text: str
    meta_info: MetaInfoJson
    output_ids: list[TokenId] | None = None


class LlamaCompletionJson(Struct):
    """A continuation of llama-server's POST /completion."""

    content: str
    index: Count | None = None
    tokens: list[TokenId] | None = None
    stop_type: str | None = None
    completion_probabilities: list[ContentRow] | None = None
    tokens_evaluated: Count | None = None
    tokens_predicted: Count | None = None
    timings: Any = None
