"""What may go wrong on the way to a server: which faults may pass, how long to wait, and what a person reads.

Errors of the HTTP library are mapped in one table, `HTTP_FAULTS`, the most specific first.
"""

from __future__ import annotations

import math
import re
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2

from specviz.core.errors import AnswerError, RefusedError, RemoteError, UnreachableError
from specviz.core.secrets import Secrets
from specviz.net.redaction import words
from specviz.net.route import Route, certificates_variable, password_in

#: For the code above, which knows no HTTP library: whatever it raises for a request.
HttpError = httpx2.RequestError

#: Statuses that may pass: time-outs, conflicts, too early, too many requests. So does everything from 500 on, except
#: what a server will never do.
PASSING = (408, 409, 425, 429)
NEVER = (501, 505, 511)
#: A server that fails on a request mostly fails on it again: these are tried three times, not six.
FAILING = (500,)
#: A proxy mostly says so of a server that it cannot reach at all: three times too.
GATEWAY = (502, 503, 504)
_BUSY = (429, 503, 529)


@dataclass(eq=False)
class Fault(Exception):
    """A failed attempt.

    Attributes:
        error: what to raise when it is not repeated any more.
        shown: what a person reads during the pause; empty where repeating does not help.
        after_s: how long to wait before the next attempt, as the server states it; None where it does not.
        tries: how many attempts it is worth; 0 for as many as there are.
        on_the_way: whether a proxy or the certificates here are at fault, and not the server.
    """

    error: RemoteError
    shown: str = ""
    after_s: float | None = None
    tries: int = 0
    on_the_way: bool = False

    @property
    def passing(self) -> bool:
        """Whether to try again."""
        return bool(self.shown)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a fault's message depends on, beside the error itself.

    Attributes:
        route: to the server. secrets: to be struck out of foreign texts.
        with_key: whether a key was sent.
        connect_s: the time-out of connecting.
        answered: whether the server has answered before.
        framed: whether the end of the body can be seen, see `is_framed`.
        other: asks whether the server speaks the other one of http and https; the base URL in that case, else empty.
    """

    route: Route
    secrets: Secrets
    with_key: bool = False
    connect_s: float = 0.0
    answered: bool = False
    framed: bool = False
    other: Callable[[], str] = str


#: A kind of error, and what makes a fault of it.
FaultRow = tuple[type[Exception], Callable[[Any, Circumstances], Fault]]


def fault_in(exc: Exception, at: Circumstances, table: Sequence[FaultRow]) -> Fault:
    """The fault that an error of a library is: that of the first row whose kind it has."""
    return next(make(exc, at) for kind, make in table if isinstance(exc, kind))


def fault_behind(exc: BaseException | None, route: Route) -> Fault | None:
    """The fault that an error of the HTTP library is, wherever it is in the chain behind another; None for none."""
    while exc is not None and not isinstance(exc, HttpError):
        exc = exc.__cause__ or exc.__context__
    at = Circumstances(route, Secrets(password_in(route.proxy.value)))
    return None if exc is None else fault_in(exc, at, HTTP_FAULTS)


# Statuses.


@dataclass(frozen=True, slots=True)
class Refusal:
    """The words for a status: what it means, and what to do about it."""

    what: str
    remedy: str


_SEE = "See what it says; `specviz doctor` shows what this server can do."
_REFUSALS: dict[int, Refusal] = {
    400: Refusal("refused the request", _SEE),
    401: Refusal("refused the key", "Check TARGET_API_KEY, or the key on the page."),
    402: Refusal("requires payment", "Check the account that the key belongs to."),
    403: Refusal("does not allow this", "Check whether the key may use this model, and from this address."),
    404: Refusal(
        "does not know the model or the address", "Check the model's name, and that the base URL ends in /v1."
    ),
    405: Refusal("has no completions at this address", "Check the base URL; most end in /v1."),
    413: Refusal("refused the request as too large", "Shorten the prompt, or lower K."),
    422: Refusal("refused the request", _SEE),
    511: Refusal("is not reached: this network asks to sign in", "Sign in with a browser, and try again."),
}
_REFUSED = Refusal("refused the request", "See what it says.")
#: How servers that speak https answer a request in plain http, with a 400.
_WANTS_TLS = re.compile(r"https|ssl|tls", re.IGNORECASE)
_NO_KEY = Refusal("asks for a key", "Set TARGET_API_KEY, or give the key on the page.")


def fault_of_status(status: int, message: str, headers: Mapping[str, str], at: Circumstances, now: float) -> Fault:
    """The fault that an HTTP status is.

    Args:
        status: 300 to 599.
        message: the server's own, fit to be shown.
        headers: lower-case names.
        at: where it came from.
        now: seconds since the epoch.
    """
    ends = f" ({status})" + (f": {message}" if message else ".")
    if status in PASSING or (status >= 500 and status not in NEVER):
        return _passing(status, ends, headers, at.route, now)
    if status == 400 and _WANTS_TLS.search(message) and (other := at.other()):
        return _other_scheme(at, other)
    where = at.route.where
    if status < 400:
        to = words(headers.get("location", "").partition("?")[0], at.secrets) or "another address"
        remedy = "Set the base URL to that server: a request that follows a redirect would lose its body or its key."
        return Fault(RefusedError(f"The server at {where} redirects to {to}{ends}", remedy, status))
    if status == 407 and at.route.forwarded:
        what = f"The proxy {at.route.named} asks for a user and a password{ends}"
        return Fault(RefusedError(what, f"Give them as http://user:password@host:port, or {at.route.around}.", status))
    refusal = _NO_KEY if status == 401 and not at.with_key else _REFUSALS.get(status, _REFUSED)
    if status in (404, 405) and not urlsplit(at.route.address).path:
        refusal = Refusal(refusal.what, f"The base URL has no path: try {at.route.address}/v1.")
    error = RefusedError(
        f"The server at {where} {refusal.what}{ends}", refusal.remedy + _or_the_proxy(at.route), status
    )
    return Fault(error)


def _or_the_proxy(route: Route) -> str:
    return f" If it is the proxy that answers, {route.around}." if route.forwarded else ""


def _passing(status: int, ends: str, headers: Mapping[str, str], route: Route, now: float) -> Fault:
    what, remedy = (
        ("is busy", "Try again later, or with a lower K: each round may count against a limit.")
        if status in _BUSY
        else ("fails", "Try again later; the server's own log may say more.")
    )
    error = UnreachableError(f"The server at {route.where} {what}{ends}", remedy + _or_the_proxy(route), status)
    few = status in FAILING or (status in GATEWAY and route.forwarded)
    return Fault(error, f"The server {what} ({status}); trying again", retry_after_s(headers, now), 3 if few else 0)


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """How long to wait before the next attempt: `retry-after-ms`, else `Retry-After` in seconds or as a date."""
    for name, read in _AFTER:
        try:
            seconds = read(headers[name], now)
        except (KeyError, ValueError, TypeError, OverflowError):
            continue
        if not math.isnan(seconds):
            return max(0.0, seconds)
    return None


_AFTER: tuple[tuple[str, Callable[[str, float], float]], ...] = (
    ("retry-after-ms", lambda text, now: float(text) / 1000),
    ("retry-after", lambda text, now: float(text)),
    ("retry-after", lambda text, now: parsedate_to_datetime(text).timestamp() - now),
)


# The kinds of fault.


def broken(what: str, where: str, remedy: str = "Check the network between here and there.") -> Fault:
    """A connection that was lost, or an answer that did not come."""
    return Fault(UnreachableError(f"The server at {where} {what}.", remedy), f"The server {what}; trying again")


def given_up(patience_s: float, where: str) -> Fault:
    """An answer that does not end."""
    remedy = "It may be overloaded; a lower K or a shorter prompt asks less of it."
    return Fault(UnreachableError(f"The server at {where} did not finish its answer within {patience_s:g} s.", remedy))


def unreachable(why: str, where: str, remedy: str = "Is the server running, and is the base URL right?") -> Fault:
    """No connection can be made."""
    return Fault(UnreachableError(f"Nothing answers at {where}: {why}.", remedy))


def unusable(what: str, where: str, remedy: str = "Check the base URL; most end in /v1.") -> Fault:
    """An answer that cannot be used."""
    return Fault(AnswerError(f"The server at {where} {what}.", remedy, 200))


# Errors of the HTTP library.


def _no_connection(exc: Exception, at: Circumstances) -> Fault:
    cause = _cause(exc)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _untrusted(cause, at)
    if isinstance(cause, ssl.SSLError) and not at.answered:
        if other := at.other():
            return _other_scheme(at, other)
        what = f"does not complete the handshake of https ({words(cause.reason or str(cause), at.secrets)})"
        error = UnreachableError(f"The server at {at.route.where} {what}.", "Check scheme and port of the base URL.")
        return Fault(error)
    if at.route.proxy:
        why = _why(exc, cause, at)
        remedy = f"Is it running? Correct {at.route.variable}, or {at.route.around}."
        error = UnreachableError(f"The proxy {at.route.named} takes no connections: {why}.", remedy)
        again = "The proxy takes no connections; trying again" if at.answered else ""
        return Fault(error, again, on_the_way=True)
    if at.answered:
        # It may be restarting.
        return broken("takes no connections", at.route.where, "Is the server still running?")
    return unreachable(_why(exc, cause, at), at.route.where)


def _why(exc: Exception, cause: OSError | None, at: Circumstances) -> str:
    if isinstance(exc, httpx2.ConnectTimeout):
        return f"no connection within {at.connect_s:g} s"
    what = words(str(exc), at.secrets)
    if isinstance(cause, socket.gaierror):
        return f"its host has no address ({what})"
    if isinstance(cause, ConnectionRefusedError):
        return f"nothing listens on this port ({what})"
    return what or "no connection"


def _untrusted(error: ssl.SSLCertVerificationError, at: Circumstances) -> Fault:
    variable = certificates_variable()
    if error.verify_code in _OTHER_HOST:
        remedy = "Check the host of the base URL."
    elif variable:
        remedy = f"Add the certificate of whoever signed it to what {variable} names, if you trust them."
    else:
        remedy = "Set SSL_CERT_FILE to the certificate of whoever signed it, if you trust them."
    why = words(error.verify_message, at.secrets)
    what = f"The certificate of the server at {at.route.where} cannot be trusted ({why})."
    return Fault(UnreachableError(what, remedy), on_the_way=True)


#: OpenSSL: the certificate is for another name, or for another address.
_OTHER_HOST = (62, 64)


def _cause(exc: BaseException | None) -> OSError | None:
    """The error of the operating system, or of TLS, behind one of the HTTP library."""
    while exc is not None and not isinstance(exc, OSError):
        exc = exc.__cause__ or exc.__context__
    return exc


def _other_scheme(at: Circumstances, other: str) -> Fault:
    asked, spoken = urlsplit(at.route.address).scheme, urlsplit(other).scheme
    what = f"The server at {at.route.where} speaks {spoken}, not {asked}."
    return Fault(UnreachableError(what, f"Set the base URL to {other}."))


def _broke(exc: Exception, at: Circumstances) -> Fault:
    if not at.answered and (other := at.other()):
        return _other_scheme(at, other)
    if "illegal status line" in str(exc):
        return unusable("answers with something that is not HTTP", at.route.where, "Check the port of the base URL.")
    return broken("broke the connection", at.route.where)


def _proxy_refuses(exc: Exception, at: Circumstances) -> Fault:
    what = f"The proxy {at.route.named} does not connect to {at.route.address} ({words(str(exc), at.secrets)})."
    login = "give user and password as in http://user:password@host:port" if "407" in str(exc) else "see what it says"
    remedy = f"Check {at.route.variable}: {login}; or {at.route.around}."
    return Fault(UnreachableError(what, remedy), on_the_way=True)


def _no_json(exc: Exception, at: Circumstances) -> Fault:
    return unusable("sent something that is no JSON", at.route.where) if at.framed else _cut(at)


def _cut(at: Circumstances) -> Fault:
    return broken("broke off its answer", at.route.where)


def _unknown(exc: Exception, at: Circumstances) -> Fault:
    return unusable(f"sent what cannot be read ({words(f'{type(exc).__name__}: {exc}', at.secrets)})", at.route.where)


HTTP_FAULTS: tuple[FaultRow, ...] = (
    (httpx2.ConnectTimeout, _no_connection),
    (httpx2.ConnectError, _no_connection),
    (
        httpx2.TimeoutException,
        lambda exc, at: broken(
            "did not answer in time", at.route.where, "It may be overloaded, or the prompt too long for it."
        ),
    ),
    (httpx2.ProxyError, _proxy_refuses),
    (httpx2.DecodingError, lambda exc, at: unusable("sent an answer that cannot be unpacked", at.route.where)),
    (httpx2.RequestError, _broke),
    (ValueError, _no_json),
    (RecursionError, _no_json),
    (Exception, _unknown),
)


def is_framed(response: httpx2.Response | None) -> bool:
    """Whether the end of a body can be seen: then the library itself reports one that is missing."""
    if response is None:
        return False
    chunked = "chunked" in response.headers.get("transfer-encoding", "").lower()
    return chunked or "content-length" in response.headers or response.http_version == "HTTP/2"
