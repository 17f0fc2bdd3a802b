"""Requests on the wire, through the openai SDK: with time-outs, repeated where that may help, stoppable at any time.

The SDK's own retries are off: its pauses could be neither shown nor ended.
"""

from __future__ import annotations

import json
import math
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import httpx2
import openai
import tenacity
from openai import Stream

from specviz.core.connection import Connection
from specviz.core.errors import RefusedError, SettingsError, StoppedError
from specviz.core.ports import OnProgress, Progress
from specviz.net.redaction import LogRedactor, message_in, message_of, words
from specviz.targets.completions.values import Engine, Piece, Reply, Request
from specviz.targets.completions.wire import dialect
from specviz.targets.completions.wire.address import address_of, authorization_of, below
from specviz.targets.completions.wire.faults import Fault, broken, fault_of, given_up, unreachable, unusable
from specviz.targets.completions.wire.flight import POLL_S, Flight, Wires
from specviz.targets.completions.wire.pieces import PieceReader

T = TypeVar("T")

#: Longest body that is read, in bytes. A round of scoring with a context of 8,192 tokens brings some 20 MB.
BODY_MAX = 256 * 2**20
#: How many models a refused one is answered with.
_NAMES = 8
#: Nothing else is sent: the SDK would add what other variables of the environment say, and facts about the machine.
_SENT_HEADERS = frozenset(
    ("host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent")
)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between attempts that a server does not set itself: `first_s`, twice that, and so on, to `longest_s`.

    Attributes:
        jitter_s: at most so much is added to each, so that clients do not come back all at once.
        attempts: after so many a call is given up.
        show_s: how often a pause is shown.
    """

    first_s: float = 0.5
    longest_s: float = 8.0
    jitter_s: float = 0.25
    attempts: int = 6
    show_s: float = 0.5


BACKOFF = Backoff()


@dataclass(slots=True)
class _Attempt:
    """What one attempt, running or not, has sent and received. Times are those of `time.perf_counter`.

    Attributes:
        since: from when on patience counts.
    """

    since: float
    sent_at: float
    ended_at: float = 0.0
    sent_bytes: int = 0
    response: httpx2.Response | None = None

    @property
    def received_bytes(self) -> int:
        return self.response.num_bytes_downloaded if self.response is not None else 0


class HttpCompletions:
    """A server's completions API. One call at a time; `close` it when it is not needed any more.

    Args:
        connection: where the server is, and the key.
        model: the name that the server knows it by.
        on_progress: told of every pause; an empty text ends it.
        cancelled: asked about twenty times a second during every call and pause.
        backoff: pauses and attempts.

    Raises:
        SettingsError: the key or the URL cannot be sent.
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
        self._connection, self._model, self._backoff = connection, model, backoff
        self._on_progress, self._cancelled = on_progress, cancelled
        self._secrets = connection.secrets
        self._authorization = authorization_of(connection)
        self._address = address_of(connection)
        self._wires, self._local = Wires(), threading.local()
        self._answered = False
        self._models: tuple[str, ...] | None = None
        timeout = httpx2.Timeout(connection.read_s, connect=connection.connect_s, pool=connection.connect_s)
        self._http = _http_client(timeout, self._on_request, self._on_response)
        # The key is put in where a request leaves, so that the SDK never has it.
        self._client = openai.OpenAI(
            api_key="-", base_url=connection.shown, timeout=timeout, max_retries=0, http_client=self._http
        )
        self._logs = LogRedactor(self._secrets)
        self._logs.hang()

    def complete(self, request: Request, *, engine: Engine = "") -> Reply:
        """One call, repeated while that may help.

        Raises:
            RefusedError: the server will not do it, in its own words.
            UnreachableError: no answer, in spite of repeating.
            AnswerError: the answer is no JSON.
            StoppedError: `cancelled` said so.
        """
        path, body = dialect.call(request, self._model, engine)
        url = below(self._address, path)
        with self._naming_models():
            return self._call("post", url, body)

    def get(self, path: str) -> Reply:
        """GET a path below the server's root, as "/version", or below the base URL, as "models"; errors as above."""
        return self._call("get", below(self._address, path))

    def stream(self, request: Request, *, engine: Engine = "") -> Iterator[Piece]:
        """One prompt, streamed; repeated only while nothing has come. Closing the iterator closes the connection.

        Raises:
            RemoteError: as above; also behind the first piece, where the server breaks off.
            StoppedError: `cancelled` said so.
        """
        # Every engine: only text is taken from a stream, and the events of SGLang's own endpoint repeat all before.
        body = dialect.stream_body(request, self._model, engine)
        url = below(self._address, "completions")

        def first() -> tuple[Piece | None, Generator[Piece]]:
            pieces = self._streamed(url, body)
            return next(pieces, None), pieces

        with self._naming_models():
            piece, pieces = self._repeated(first)
        fault: Fault | None = None
        with closing(pieces):
            try:
                if piece is not None:
                    yield piece
                yield from pieces
            except Fault as exc:
                fault = exc
        if fault is not None:
            self._raise(fault)

    def close(self) -> None:
        """Close the connections; may be called twice."""
        self._wires.cut()
        self._client.close()
        self._logs.remove()

    # A call, and calls again.

    def _call(self, method: str, url: str, body: dict[str, Any] | None = None) -> Reply:
        attempts: list[_Attempt] = []
        answer, headers = self._repeated(lambda: self._once(method, url, body, attempts))
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

    def _repeated(self, once: Callable[[], T]) -> T:
        """What `once` gives, tried again after each `Fault` that may pass."""
        backoff = self._backoff
        growing = tenacity.wait_exponential_jitter(
            multiplier=backoff.first_s, max=backoff.longest_s, jitter=backoff.jitter_s
        )
        shown = ""

        def wait(state: tenacity.RetryCallState) -> float:
            nonlocal shown
            fault = _fault_in(state)
            shown = fault.words
            return growing(state) if fault.after_s is None else fault.after_s

        too_late = tenacity.stop_before_delay(self._connection.patience_s)

        def enough(state: tenacity.RetryCallState) -> bool:
            tries = _fault_in(state).tries or backoff.attempts
            return state.attempt_number >= min(tries, backoff.attempts) or too_late(state)

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda exc: isinstance(exc, Fault) and exc.passing),
            wait=wait,
            stop=enough,
            sleep=lambda seconds: self._pause(seconds, shown),
            reraise=True,
        )
        try:
            return retrying(once)
        except Fault as exc:
            failed = exc
        self._raise(failed)

    def _raise(self, fault: Fault) -> NoReturn:
        """Its error, without the foreign ones that led to it: they hold requests, and with them the key."""
        error = fault.error
        if fault.after_s is not None and fault.after_s >= self._connection.patience_s:
            error = type(error)(
                f"{error.message} It asks to be left alone for {fault.after_s:.0f} s.", error.remedy, error.status
            )
        raise error from None

    def _pause(self, seconds: float, words: str) -> None:
        """Wait, tell of it, and end at once when the run is stopped."""
        began = time.monotonic()
        shown = -math.inf
        try:
            while (waited := time.monotonic() - began) < seconds:
                self._check_stop()
                if waited - shown >= self._backoff.show_s:
                    shown = waited
                    self._on_progress(Progress(words, int(waited), math.ceil(seconds), "s"))
                time.sleep(min(POLL_S, seconds - waited))
        finally:
            if shown >= 0:
                self._on_progress(Progress(""))

    def _check_stop(self) -> None:
        if self._cancelled():
            raise StoppedError("The run was stopped while it waited for the server.")

    def _once(
        self, method: str, url: str, body: dict[str, Any] | None, attempts: list[_Attempt]
    ) -> tuple[Any, Mapping[str, str]]:
        now = time.perf_counter()
        attempt = _Attempt(since=attempts[0].since if attempts else now, sent_at=now)
        attempts.append(attempt)

        def work(flight: Flight[httpx2.Response]) -> None:
            self._local.flight, self._local.attempt = flight, attempt
            if method == "get":
                response = self._client.get(url, cast_to=httpx2.Response)
            else:
                response = self._client.post(url, cast_to=httpx2.Response, body=body)
            attempt.ended_at = time.perf_counter()
            flight.put(response)

        (response,) = Flight(self._guarded(work), self._wires).parts(self._checker(attempt))
        self._answered = True
        return self._read(response), {k.lower(): self._secrets.strike(v) for k, v in response.headers.items()}

    def _streamed(self, url: str, body: dict[str, Any]) -> Generator[Piece]:
        now = time.perf_counter()
        attempt = _Attempt(since=now, sent_at=now)

        def work(flight: Flight[tuple[float, object]]) -> None:
            self._local.flight, self._local.attempt = flight, attempt
            stream = self._client.post(url, cast_to=object, body=body, stream=True, stream_cls=Stream[object])
            for chunk in stream:
                flight.put((time.perf_counter(), chunk))

        reader = PieceReader()
        with closing(Flight(self._guarded(work), self._wires).parts(self._checker(attempt))) as parts:
            for at, chunk in parts:
                self._answered = True
                self._check_error(chunk)
                piece = reader.read(at, chunk)
                if piece is not None:
                    yield piece
                # Patience is for one part, and not for the time that the consumer takes.
                attempt.since = time.perf_counter()
        if not reader.seen:
            raise unusable("sent no stream", self._connection.shown)
        if not (reader.finished or _framed(attempt.response)):
            raise broken("broke off its answer", self._connection.shown)

    def _guarded(self, work: Callable[[Flight[T]], None]) -> Callable[[Flight[T]], None]:
        """The same work, with every error of the libraries turned into a `Fault` that holds nothing of theirs."""

        def guarded(flight: Flight[T]) -> None:
            fault: Fault | None = None
            try:
                work(flight)
            except Exception as exc:
                fault = self._fault(exc)
            if fault is not None:
                raise fault

        return guarded

    def _checker(self, attempt: _Attempt) -> Callable[[], None]:
        """Ends a call that is stopped, that never ends, or that brings more than anything asked for could be."""
        patience_s, shown = self._connection.patience_s, self._connection.shown

        def check() -> None:
            self._check_stop()
            if time.perf_counter() - attempt.since > patience_s:
                raise given_up(patience_s, shown)
            if attempt.received_bytes > BODY_MAX:
                raise unusable(f"sent more than {BODY_MAX // 2**20} MB", shown)

        return check

    @contextmanager
    def _naming_models(self) -> Iterator[None]:
        """Adds to "no such model" the models that there are, as far as one more call tells."""
        try:
            yield
            return
        except RefusedError as exc:
            error = exc
        names = self._names() if error.status == 404 else ()
        if names and words(self._model, self._secrets) not in names:
            more = " and more" if len(names) > _NAMES else ""
            error = RefusedError(error.message, f"The server has: {', '.join(names[:_NAMES])}{more}.", error.status)
        raise error

    def _names(self) -> tuple[str, ...]:
        if self._models is None:
            try:
                listed = self._once("get", below(self._address, "models"), None, [])[0]
                names = [m["id"] for m in listed["data"] if isinstance(m["id"], str)]
            except (Fault, LookupError, TypeError):
                names = []
            self._models = tuple(words(name, self._secrets) for name in names)
        return self._models

    # What leaves and what comes.

    def _on_request(self, request: httpx2.Request) -> None:
        for name in set(request.headers) - _SENT_HEADERS:
            del request.headers[name]
        if self._authorization:
            request.headers["Authorization"] = self._authorization
        request.extensions["trace"] = self._wires.tracer(self._local.flight.ended)
        self._local.attempt.sent_bytes += len(request.content)

    def _on_response(self, response: httpx2.Response) -> None:
        self._local.attempt.response = response

    def _read(self, response: httpx2.Response) -> Any:
        data, shown = response.content, self._connection.shown
        fault: Fault | None = None
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            begun = data.lstrip()[:1] in (b"{", b"[")
            if begun and not _framed(response):
                fault = broken("broke off its answer", shown)
            else:
                text = message_in(data, self._secrets)
                fault = unusable("answered with something that is no JSON" + (f" ({text})" if text else ""), shown)
        if fault is not None:
            raise fault
        self._check_error(body)
        return body

    def _check_error(self, body: object) -> None:
        """An error may come with a 200, and in the middle of a stream."""
        if not isinstance(body, dict) or body.get("choices"):
            return
        if body.get("error") is not None or body.get("object") == "error":
            raise self._fault_inside(body)

    # Faults.

    def _fault(self, exc: Exception) -> Fault:
        """What a library's error means, the most specific first."""
        shown = self._connection.shown
        cause = exc.__cause__
        if isinstance(exc, openai.APIStatusError):
            return self._fault_of_status(exc.status_code, message_in(exc.response.content, self._secrets), exc.response)
        if isinstance(cause, httpx2.ConnectTimeout | httpx2.ConnectError):
            return self._no_connection(cause)
        if isinstance(exc, openai.APITimeoutError):
            return broken("did not answer in time", shown, "It may be overloaded, or the prompt too long for it.")
        if isinstance(exc, openai.APIConnectionError):
            if isinstance(cause, httpx2.ProxyError):
                return unreachable(
                    f"the proxy refuses ({words(str(cause), self._secrets)})", shown, "Check HTTPS_PROXY."
                )
            if isinstance(cause, httpx2.DecodingError):
                return unusable("sent an answer that cannot be unpacked", shown)
            return broken("broke the connection", shown)
        if isinstance(exc, openai.APIError):
            return self._fault_inside({"error": exc.body})
        if isinstance(exc, ValueError | RecursionError):  # an event of a stream that is no JSON
            whole = _framed(self._local.attempt.response)
            return unusable("sent something that is no JSON", shown) if whole else broken("broke off its answer", shown)
        text = words(f"{type(exc).__name__}: {exc}", self._secrets)
        return unusable(f"sent what cannot be read ({text})", shown)

    def _no_connection(self, cause: Exception) -> Fault:
        shown, certificate = self._connection.shown, _certificate_error(cause)
        if certificate is not None:
            why = words(certificate.verify_message, self._secrets)
            remedy = "Set SSL_CERT_FILE to the certificate of whoever signed it, if you trust them."
            return unreachable(f"its certificate cannot be trusted ({why})", shown, remedy)
        if self._answered:
            # It was there: it may be starting again.
            return broken("takes no connections", shown, "Is the server still running?")
        if isinstance(cause, httpx2.ConnectTimeout):
            return unreachable(f"no connection within {self._connection.connect_s:g} s", shown)
        return unreachable(words(str(cause), self._secrets) or "no connection", shown)

    def _fault_of_status(self, status: int, words: str, response: httpx2.Response | None) -> Fault:
        headers = {k.lower(): v for k, v in response.headers.items()} if response is not None else {}
        self._answered = True
        return fault_of(
            status, words, headers, self._connection.shown, with_key=bool(self._authorization), now=time.time()
        )

    def _fault_inside(self, body: Mapping[str, Any]) -> Fault:
        """An error that came in the body of a 200, or in a stream."""
        message, status = message_of(body, self._secrets), _status_in(body)
        if status is not None:
            return self._fault_of_status(status, message, None)
        return unusable(
            f"reports an error{f': {message}' if message else ''}", self._connection.shown, "See what it says."
        )


def _http_client(
    timeout: httpx2.Timeout,
    on_request: Callable[[httpx2.Request], None],
    on_response: Callable[[httpx2.Response], None],
) -> httpx2.Client:
    hooks: dict[str, list[Callable[..., Any]]] = {"request": [on_request], "response": [on_response]}
    with suppress(ValueError, ImportError, httpx2.InvalidURL):
        # A redirected POST would lose its body or its key.
        return httpx2.Client(timeout=timeout, follow_redirects=False, event_hooks=hooks)
    raise SettingsError(
        "The proxy that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names cannot be used.",
        "Give it as http://host:port; SOCKS needs the package socksio.",
    )


def _fault_in(state: tenacity.RetryCallState) -> Fault:
    exc = state.outcome.exception() if state.outcome else None
    if not isinstance(exc, Fault):
        raise TypeError(f"only a fault is repeated, not {exc!r}")
    return exc


def _status_in(body: Mapping[str, Any]) -> int | None:
    """The HTTP status that an error in a body names."""
    error = body.get("error")
    for place in (error if isinstance(error, dict) else {}, body):
        for name in ("code", "status_code", "status"):
            value = place.get(name)
            if isinstance(value, int | str) and str(value).isdecimal() and 300 <= int(value) <= 599:
                return int(value)
    return None


def _framed(response: httpx2.Response | None) -> bool:
    """Whether the end of a body shows: a missing end is an error of the library's then."""
    if response is None:
        return False
    chunked = "chunked" in response.headers.get("transfer-encoding", "").lower()
    return chunked or "content-length" in response.headers or response.http_version == "HTTP/2"


def _certificate_error(cause: BaseException | None) -> ssl.SSLCertVerificationError | None:
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None
