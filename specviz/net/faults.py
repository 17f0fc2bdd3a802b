"""What may go wrong on the way to a server: which faults may pass, how long to wait, and what a person reads.

Errors of the HTTP library are mapped in one table, `HTTP_FAULTS`, the most specific first.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from specviz.core.errors import AnswerError, RefusedError, RemoteError, UnreachableError
from specviz.core.secrets import Secrets
from specviz.net.redaction import words

#: For the code above, which knows no HTTP library: whatever it raises for a request.
HttpError = httpx2.RequestError

#: Statuses that may pass: time-outs, conflicts, too early, too many requests. So does everything from 500 on, except
#: what a server will never do.
PASSING = (408, 409, 425, 429)
NEVER = (501, 505)
#: A server that fails on a request mostly fails on it again: these are tried three times, not six.
FAILING = (500,)
_BUSY = (429, 503, 529)


@dataclass(eq=False)
class Fault(Exception):
    """A failed attempt.

    Attributes:
        error: what to raise when it is not repeated any more.
        shown: what a person reads during the pause; empty where repeating does not help.
        after_s: how long to wait before the next attempt, as the server states it; None where it does not.
        tries: how many attempts it is worth; 0 for as many as there are.
    """

    error: RemoteError
    shown: str = ""
    after_s: float | None = None
    tries: int = 0

    @property
    def passing(self) -> bool:
        """Whether to try again."""
        return bool(self.shown)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a fault's message depends on, beside the error itself.

    Attributes:
        address: the base URL without secrets. secrets: to be struck out of foreign texts.
        with_key: whether a key was sent.
        connect_s: the time-out of connecting.
        answered: whether the server has answered before.
        framed: whether the end of the body can be seen, see `is_framed`.
    """

    address: str
    secrets: Secrets
    with_key: bool = False
    connect_s: float = 0.0
    answered: bool = False
    framed: bool = False


#: A kind of error, and what makes a fault of it.
FaultRow = tuple[type[Exception], Callable[[Any, Circumstances], Fault]]


def fault_in(exc: Exception, at: Circumstances, table: Sequence[FaultRow]) -> Fault:
    """The fault that an error of a library is: that of the first row whose kind it has."""
    return next(make(exc, at) for kind, make in table if isinstance(exc, kind))


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
}
_REFUSED = Refusal("refused the request", "See what it says.")
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
        return _passing(status, ends, headers, at.address, now)
    if status < 400:
        remedy = "Set the base URL to that address: a request that follows a redirect would lose its body or its key."
        return Fault(RefusedError(f"The server at {at.address} redirects to another address{ends}", remedy, status))
    refusal = _NO_KEY if status == 401 and not at.with_key else _REFUSALS.get(status, _REFUSED)
    return Fault(RefusedError(f"The server at {at.address} {refusal.what}{ends}", refusal.remedy, status))


def _passing(status: int, ends: str, headers: Mapping[str, str], address: str, now: float) -> Fault:
    what, remedy = (
        ("is busy", "Try again later, or with a lower K: each round may count against a limit.")
        if status in _BUSY
        else ("fails", "Try again later; the server's own log may say more.")
    )
    error = UnreachableError(f"The server at {address} {what}{ends}", remedy, status)
    return Fault(
        error, f"The server {what} ({status}); trying again", retry_after_s(headers, now), 3 if status in FAILING else 0
    )


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


def broken(what: str, address: str, remedy: str = "Check the network between here and there.") -> Fault:
    """A connection that was lost, or an answer that did not come."""
    return Fault(UnreachableError(f"The server at {address} {what}.", remedy), f"The server {what}; trying again")


def given_up(patience_s: float, address: str) -> Fault:
    """An answer that does not end."""
    remedy = "It may be overloaded; a lower K or a shorter prompt asks less of it."
    return Fault(
        UnreachableError(f"The server at {address} did not finish its answer within {patience_s:g} s.", remedy)
    )


def unreachable(why: str, address: str, remedy: str = "Is the server running, and is the base URL right?") -> Fault:
    """No connection can be made."""
    return Fault(UnreachableError(f"Nothing answers at {address}: {why}.", remedy))


def unusable(what: str, address: str, remedy: str = "Check the base URL; most end in /v1.") -> Fault:
    """An answer that cannot be used."""
    return Fault(AnswerError(f"The server at {address} {what}.", remedy, 200))


# Errors of the HTTP library.


def _no_connection(exc: Exception, at: Circumstances) -> Fault:
    certificate = _certificate_error(exc)
    if certificate is not None:
        why = words(certificate.verify_message, at.secrets)
        remedy = "Set SSL_CERT_FILE to the certificate of whoever signed it, if you trust them."
        return unreachable(f"its certificate cannot be trusted ({why})", at.address, remedy)
    if at.answered:
        # It may be restarting.
        return broken("takes no connections", at.address, "Is the server still running?")
    if isinstance(exc, httpx2.ConnectTimeout):
        return unreachable(f"no connection within {at.connect_s:g} s", at.address)
    return unreachable(words(str(exc), at.secrets) or "no connection", at.address)


def _certificate_error(exc: BaseException | None) -> ssl.SSLCertVerificationError | None:
    while exc is not None:
        if isinstance(exc, ssl.SSLCertVerificationError):
            return exc
        exc = exc.__cause__ or exc.__context__
    return None


def _no_json(exc: Exception, at: Circumstances) -> Fault:
    return unusable("sent something that is no JSON", at.address) if at.framed else _cut(at)


def _cut(at: Circumstances) -> Fault:
    return broken("broke off its answer", at.address)


def _unknown(exc: Exception, at: Circumstances) -> Fault:
    return unusable(f"sent what cannot be read ({words(f'{type(exc).__name__}: {exc}', at.secrets)})", at.address)


HTTP_FAULTS: tuple[FaultRow, ...] = (
    (httpx2.ConnectTimeout, _no_connection),
    (httpx2.ConnectError, _no_connection),
    (
        httpx2.TimeoutException,
        lambda exc, at: broken(
            "did not answer in time", at.address, "It may be overloaded, or the prompt too long for it."
        ),
    ),
    (
        httpx2.ProxyError,
        lambda exc, at: unreachable(
            f"the proxy refuses ({words(str(exc), at.secrets)})", at.address, "Check HTTPS_PROXY."
        ),
    ),
    (httpx2.DecodingError, lambda exc, at: unusable("sent an answer that cannot be unpacked", at.address)),
    (httpx2.RequestError, lambda exc, at: broken("broke the connection", at.address)),
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
