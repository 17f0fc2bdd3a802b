"""A server's completions API through the openai SDK, over the HTTP client of `specviz.net`."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import openai

from specviz.core.connection import Connection
from specviz.core.errors import RefusedError
from specviz.core.wait import OnProgress
from specviz.net.client import Attempt, Response, ServerClient
from specviz.net.faults import (
    HTTP_FAULTS,
    Circumstances,
    Fault,
    FaultRow,
    HttpError,
    broken,
    fault_in,
    fault_of_status,
    is_framed,
    unusable,
)
from specviz.net.redaction import message_in, message_of, words
from specviz.net.repeating import BACKOFF, Backoff
from specviz.targets.completions.values import Engine, Piece, Reply, Request
from specviz.targets.completions.wire import dialect
from specviz.targets.completions.wire.pieces import PieceReader

#: How many of the server's models are named where it does not know the requested one.
_NAMES = 8
#: Fields that are arguments of the SDK; all others go as its `extra_body`, and the prompt does too: as an argument, the
#: SDK walks over each of its ids, which takes 150 ms for 8,192 of them.
_ARGUMENTS = (
    "model", "max_tokens", "temperature", "top_p", "n", "seed", "echo", "logprobs", "presence_penalty",
    "frequency_penalty", "stream", "stream_options",
)  # fmt: skip


class HttpCompletions:
    """A server's completions API. One call at a time; `close` it when it is not needed any more.

    Args:
        connection: where the server is, and the key.
        model: the name that the server knows it by.
        on_progress: receives every pause; an empty text ends it.
        cancelled: checked about twenty times a second during every call and pause.
        backoff: pauses and attempts.

    Raises:
        SettingsError: the key, the URL or a proxy cannot be used.
    """

    def __init__(
        self,
        connection: Connection,
        model: str,
        *,
        on_progress: OnProgress,
        cancelled: Callable[[], bool],
        backoff: Backoff = BACKOFF,
    ) -> None:
        self._model = model
        self._server = ServerClient(
            connection, on_progress=on_progress, cancelled=cancelled, backoff=backoff, faults=_SDK_FAULTS
        )
        # The key is added where a request leaves, so that the SDK never holds it; see `ServerClient`.
        self._sdk = openai.OpenAI(
            api_key="-", base_url=connection.shown, max_retries=0, timeout=self._server.http.timeout,
            http_client=self._server.http,
        )  # fmt: skip
        self._create = self._sdk.completions.with_raw_response.create
        self._models: tuple[str, ...] | None = None

    def complete(self, request: Request, *, engine: Engine = "") -> Reply:
        """One call, repeated while that may help.

        Raises:
            RefusedError: the server will not do it, in its own words.
            UnreachableError: no answer, in spite of repeating.
            AnswerError: the answer is no JSON.
            StoppedError: `cancelled` returned true.
        """
        path, body = dialect.call(request, self._model, engine)
        with self._naming_models():
            if path == dialect.COMPLETIONS:
                return self._call(lambda: self._created(body).http_response)
            url = self._server.url(path)
            return self._call(lambda: self._sdk.post(url, cast_to=Response, body=body))

    def get(self, path: str) -> Reply:
        """GET a path below the server's root, as "/version", or below the base URL, as "models"; errors as above."""
        return self._call(self._getting(path))

    def stream(self, request: Request, *, engine: Engine = "") -> Iterator[Piece]:
        """One prompt, streamed; repeated only before the first piece. Closing the iterator closes the connection.

        Raises:
            RemoteError: as above; also after the first piece, where the server breaks off.
            StoppedError: `cancelled` returned true.
        """
        # For every engine: only text is taken from a stream, and each event of SGLang's own endpoint repeats the text
        # of all before it.
        body = dialect.stream_body(request, self._model, engine)

        def first() -> tuple[Piece | None, Generator[Piece]]:
            pieces = self._streamed(body)
            return next(pieces, None), pieces

        with self._naming_models():
            piece, pieces = self._server.repeated(first)
        fault: Fault | None = None
        with closing(pieces):
            try:
                if piece is not None:
                    yield piece
                yield from pieces
            except Fault as exc:
                fault = exc
        if fault is not None:
            self._server.give_up(fault)

    def close(self) -> None:
        """Close the connections; may be called twice."""
        self._server.close()

    # A call.

    def _created(self, body: dict[str, Any]) -> Any:
        """The SDK's raw response: its type of an answer checks nothing, and would read every row of an echo."""
        named = {name: body[name] for name in _ARGUMENTS if name in body}
        extra = {name: value for name, value in body.items() if name not in _ARGUMENTS}
        return self._create(**named, prompt="", extra_body=extra)

    def _getting(self, path: str) -> Callable[[], Response]:
        return lambda: self._sdk.get(self._server.url(path), cast_to=Response)

    def _call(self, send: Callable[[], Response]) -> Reply:
        attempts: list[Attempt] = []
        answer, headers = self._server.repeated(lambda: self._once(send, attempts))
        first, last = attempts[0], attempts[-1]
        return Reply(
            body=answer,
            headers=headers,
            call_ms=(last.ended_at - last.sent_at) * 1000,
            waited_ms=(last.sent_at - first.sent_at) * 1000,
            sent_bytes=sum(a.sent_bytes for a in attempts),
            received_bytes=sum(a.received_bytes for a in attempts),
            attempts=len(attempts),
        )

    def _once(self, send: Callable[[], Response], attempts: list[Attempt]) -> tuple[Any, Mapping[str, str]]:
        attempt = Attempt(attempts[0].since if attempts else None)
        attempts.append(attempt)
        (response,) = self._server.parts(lambda: [send()], attempt)
        body = self._server.json_in(response.content, attempt)
        self._check_error(body, attempt)
        if isinstance(body, dict) and isinstance(body.get("model"), str):
            # The only text of an answer that is shown as it is.
            body["model"] = self._server.secrets.strike(body["model"])
        return body, {name: self._server.secrets.strike(value) for name, value in response.headers.items()}

    def _streamed(self, body: dict[str, Any]) -> Generator[Piece]:
        attempt, reader = Attempt(), PieceReader()

        def events() -> Iterator[tuple[float, object]]:
            for event in self._created(body).parse(to=openai.Stream[object]):
                yield time.perf_counter(), event

        with closing(self._server.parts(events, attempt)) as parts:
            for at, event in parts:
                self._check_error(event, attempt)
                piece = reader.read(at, event)
                if piece is not None:
                    yield piece
                # The limit is for one part, without the time that the consumer takes.
                attempt.since = time.perf_counter()
        if not reader.seen:
            raise unusable("sent no stream", self._server.where)
        if not (reader.finished or is_framed(attempt.response)):
            raise broken("broke off its answer", self._server.where)

    def _check_error(self, body: object, attempt: Attempt) -> None:
        """An error may come with a 200, and in the middle of a stream."""
        if not isinstance(body, dict) or body.get("choices"):
            return
        if body.get("error") is not None or body.get("object") == "error":
            raise _fault_inside(body, self._server.circumstances(attempt))

    # Which models there are.

    @contextmanager
    def _naming_models(self) -> Iterator[None]:
        """Adds the names of the server's models to the error for an unknown model."""
        try:
            yield
            return
        except RefusedError as exc:
            error = exc
        names = self._names() if error.status == 404 else ()
        if names and words(self._model, self._server.secrets) not in names:
            more = " and more" if len(names) > _NAMES else ""
            error = RefusedError(error.message, f"The server has: {', '.join(names[:_NAMES])}{more}.", error.status)
        raise error

    def _names(self) -> tuple[str, ...]:
        if self._models is None:
            try:
                listed, _ = self._once(self._getting("models"), [])
                names = [m["id"] for m in listed["data"] if isinstance(m["id"], str)]
            except (Fault, LookupError, TypeError):
                names = []
            self._models = tuple(words(name, self._server.secrets) for name in names)
        return self._models


# Errors of the SDK, and those that a server reports in a body.


def _fault_in_status(exc: openai.APIStatusError, at: Circumstances) -> Fault:
    message = message_in(exc.response.content, at.secrets)
    return fault_of_status(exc.status_code, message, exc.response.headers, at, time.time())


def _fault_in_connection(exc: openai.APIConnectionError, at: Circumstances) -> Fault:
    if isinstance(exc.__cause__, HttpError):
        return fault_in(exc.__cause__, at, HTTP_FAULTS)
    return broken("broke the connection", at.route.where)


def _fault_inside(body: Mapping[str, Any], at: Circumstances) -> Fault:
    """An error that came in the body of a 200, or in a stream."""
    message, status = message_of(body, at.secrets), _status_in(body)
    if status is not None:
        return fault_of_status(status, message, {}, at, time.time())
    return unusable(f"reports an error{f': {message}' if message else ''}", at.route.where, "See what it says.")


def _status_in(body: Mapping[str, Any]) -> int | None:
    """The HTTP status that an error in a body names."""
    error = body.get("error")
    for place in (error if isinstance(error, dict) else {}, body):
        for name in ("code", "status_code", "status"):
            value = place.get(name)
            if isinstance(value, int | str) and str(value).isdecimal() and 300 <= int(value) <= 599:
                return int(value)
    return None


#: The most specific first; a time-out is a connection error of the SDK's.
_SDK_FAULTS: tuple[FaultRow, ...] = (
    (openai.APIStatusError, _fault_in_status),
    (openai.APIConnectionError, _fault_in_connection),
    (openai.APIError, lambda exc, at: _fault_inside({"error": exc.body}, at)),
)
