"""The HTTP client for a server. No other module makes one."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from specviz.core.connection import Connection, Secret
from specviz.core.errors import SettingsError
from specviz.core.secrets import Secrets
from specviz.core.wait import OnProgress
from specviz.net.address import authorization_of, below, query_of
from specviz.net.faults import (
    HTTP_FAULTS,
    Circumstances,
    Fault,
    FaultRow,
    broken,
    fault_in,
    given_up,
    is_framed,
    unusable,
)
from specviz.net.flight import Flight, Wires
from specviz.net.redaction import LogRedactor, message_in
from specviz.net.repeating import BACKOFF, Backoff, Repeating
from specviz.net.route import answers, certificates, password_in, route_to

T = TypeVar("T")
#: For the code above, which knows no HTTP library.
Response = httpx2.Response

#: Longest body that is read, in bytes. A round of scoring with a context of 8,192 tokens brings some 20 MB.
BODY_MAX = 256 * 2**20
#: No other header is sent: a library may add values of other environment variables, and facts about the machine.
_SENT_HEADERS = frozenset(
    (b"host", b"accept", b"accept-encoding", b"connection", b"content-type", b"content-length", b"user-agent")
)


class Attempt:
    """What one attempt of a call, running or not, has sent and received. Times are those of `time.perf_counter`.

    Attributes:
        since: the call's patience counts from here.
    """

    def __init__(self, since: float | None = None) -> None:
        self.sent_at = time.perf_counter()
        self.since = self.sent_at if since is None else since
        self.ended_at = 0.0
        self.sent_bytes = 0
        self.response: httpx2.Response | None = None

    @property
    def received_bytes(self) -> int:
        """Of the body, as far as it has come."""
        return self.response.num_bytes_downloaded if self.response is not None else 0


@dataclass(slots=True)
class _Running:
    """The call that a thread makes. `headers`: of the request, as the library above made them."""

    attempt: Attempt
    ended: threading.Event
    headers: httpx2.Headers | None = None


class ServerClient:
    """One server: its httpx2 client, and calls over it that can be stopped and are repeated. `close` it after use.

    The key, or user and password of the URL, is added where a request leaves for the server's own address; the
    libraries above never hold it. Redirects are not followed: a redirected POST would lose its body or its key. No
    proxy is given what is secret: in plain http it could read it, and the client refuses.

    Args:
        connection: where the server is, and the key.
        on_progress: receives every pause; an empty text ends it.
        cancelled: checked about twenty times a second during every call and pause.
        backoff: pauses and attempts.
        faults: rows for errors of a library above, tried before those of the HTTP library.

    Attributes:
        http: the httpx2 client, for a library that builds on it. Requests over it belong inside `parts`.
        secrets: to be struck out of every text of the server.

    Raises:
        SettingsError: the key, the URL, a proxy or the certificates cannot be used.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        on_progress: OnProgress,
        cancelled: Callable[[], bool],
        backoff: Backoff = BACKOFF,
        faults: Sequence[FaultRow] = (),
    ) -> None:
        self._connection, self._faults = connection, (*faults, *HTTP_FAULTS)
        self._route = route_to(connection.shown)
        self.secrets = Secrets([connection.key.value, *password_in(self._route.proxy.value)], [connection.url.value])
        self._authorization, self._query = Secret(authorization_of(connection)), Secret(query_of(connection))
        if self._route.forwarded and (self._authorization or self._query):
            raise SettingsError(
                f"The proxy {self._route.named} could read the key, or the query of the base URL, on their way to "
                f"{self.address}: it is not https.",
                f"Use an https:// address, or {self._route.around}.",
            )
        self._repeating = Repeating(connection.patience_s, on_progress, cancelled, backoff)
        self._wires, self._local = Wires(), threading.local()
        self._answered, self._other = False, ""
        self._has_asked = False
        self.http = self._http_client()
        self._origin = _origin(httpx2.URL(connection.shown))
        self._logs = LogRedactor(self.secrets)
        self._logs.hang()

    @property
    def address(self) -> str:
        """The base URL without secrets."""
        return self._connection.shown

    @property
    def where(self) -> str:
        """The same, and the proxy before it, for messages."""
        return self._route.where

    def url(self, path: str) -> str:
        """The URL of a path below the server's root, as "/version", or below the base URL, as "models"."""
        return below(self.address, path)

    def close(self) -> None:
        """Close the connections; may be called twice."""
        self._wires.cut()
        self.http.close()
        self._logs.remove()

    def repeated(self, once: Callable[[], T]) -> T:
        """What `once` returns, tried again after each fault that may pass; see `Repeating.call`."""
        return self._repeating.call(once)

    def give_up(self, fault: Fault) -> NoReturn:
        """Raise a fault's error."""
        self._repeating.give_up(fault)

    def parts(self, work: Callable[[], Iterable[T]], attempt: Attempt) -> Generator[T]:
        """What `work` yields in a thread of its own, as it comes; closing the generator ends the work.

        Raises:
            Fault: a library failed, the call went on for too long, or it brought more than `BODY_MAX`.
            StoppedError: the run was stopped.
        """

        def guarded(flight: Flight[T]) -> None:
            self._local.running = _Running(attempt, flight.ended)
            fault: Fault | None = None
            try:
                for part in work():
                    flight.put(part)
            except Fault as exc:
                fault = exc
            except Exception as exc:
                fault = fault_in(exc, self.circumstances(attempt), self._faults)
            attempt.ended_at = time.perf_counter()
            if fault is not None:
                raise fault  # outside the handler: it must not hold the library's error, which holds the request

        return Flight(guarded, self._wires).parts(lambda: self._check(attempt))

    def circumstances(self, attempt: Attempt) -> Circumstances:
        """What a message about a fault of this attempt depends on."""
        return Circumstances(
            route=self._route,
            secrets=self.secrets,
            with_key=bool(self._authorization),
            connect_s=self._connection.connect_s,
            answered=self._answered,
            framed=is_framed(attempt.response),
            other=self._other_scheme,
        )

    def _other_scheme(self) -> str:
        """The base URL with the other one of http and https, if the server answers there; asked once."""
        if not (self._has_asked or self._route.proxy):
            self._has_asked = True
            scheme, rest = self.address.split("://", 1)
            other = f"{'http' if scheme == 'https' else 'https'}://{rest}"
            self._other = other if answers(other) else ""
        return self._other

    def json_in(self, body: bytes, attempt: Attempt) -> Any:
        """A body that must be JSON.

        Raises:
            Fault: it is not.
        """
        # Four times as fast as json, and a long echo is megabytes.
        with suppress(msgspec.DecodeError, RecursionError):
            return msgspec.json.decode(body)
        # It reads NaN and Infinity too, which servers in Python write.
        with suppress(ValueError, RecursionError):
            return json.loads(body)
        if body.lstrip()[:1] in (b"{", b"[") and not is_framed(attempt.response):
            raise broken("broke off its answer", self.where)
        text = message_in(body, self.secrets)
        said = f" ({text})" if text else ""
        if body.lstrip()[:1] == b"<":
            remedy = "Check the base URL; most end in /v1. A network that asks to sign in answers so for any server."
            raise unusable(f"answered with a web page{said}, not with JSON", self.where, remedy)
        raise unusable(f"answered with something that is no JSON{said}", self.where)

    def _check(self, attempt: Attempt) -> None:
        self._repeating.check_stop()
        if time.perf_counter() - attempt.since > self._connection.patience_s:
            raise given_up(self._connection.patience_s, self.where)
        if attempt.received_bytes > BODY_MAX:
            raise unusable(f"sent more than {BODY_MAX // 2**20} MB", self.where)

    def _http_client(self) -> httpx2.Client:
        timeout = httpx2.Timeout(
            self._connection.read_s, connect=self._connection.connect_s, pool=self._connection.connect_s
        )
        hooks: dict[str, list[Callable[..., Any]]] = {"request": [self._on_request], "response": [self._on_response]}
        secure = "https" in (urlsplit(self.address).scheme, urlsplit(self._route.proxy.value).scheme)
        # Nothing that is sent in plain http needs certificates; a context without any trusts nobody.
        trusted = certificates() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        proxy = None
        if self._route.proxy:
            url = self._route.proxy.value
            proxy = httpx2.Proxy(url, ssl_context=trusted if url.lower().startswith("https:") else None)
        return httpx2.Client(
            verify=trusted, proxy=proxy, trust_env=False, timeout=timeout, follow_redirects=False, event_hooks=hooks
        )

    def _on_request(self, request: httpx2.Request) -> None:
        running: _Running = self._local.running
        running.headers = request.headers
        request.headers = httpx2.Headers([(k, v) for k, v in request.headers.raw if k.lower() in _SENT_HEADERS])
        if _origin(request.url) == self._origin:
            if self._query:
                request.url = request.url.copy_with(query=self._query.value.encode())
            if self._authorization:
                request.headers["Authorization"] = self._authorization.value
        request.extensions["trace"] = self._wires.tracer(running.ended)
        running.attempt.sent_bytes += len(request.content)

    def _on_response(self, response: httpx2.Response) -> None:
        running: _Running = self._local.running
        self._answered = True
        running.attempt.response = response
        if running.headers is not None:
            # The openai SDK reads a header of its own again; and a request that is kept does not hold the key.
            response.request.headers = running.headers


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
