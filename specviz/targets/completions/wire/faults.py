"""What may go wrong on the way to a server: which faults pass, how long to wait, and what to tell a person.

Pure; `transport` asks and raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from specviz.core.errors import AnswerError, RefusedError, RemoteError, UnreachableError

#: Statuses that may pass: time-outs, conflicts, too early, too many requests. And everything from 500 on, but what a
#: server says it will never do.
PASSING = (408, 409, 425, 429)
NEVER = (501, 505)
_SLOW = "It may be overloaded; a lower K or a shorter prompt asks less of it."
#: A server that fails on a request mostly fails on it again: it is asked three times, not six.
FAILING = (500,)


@dataclass(eq=False)
class Fault(Exception):
    """A failed attempt.

    Attributes:
        error: what to raise once it is not repeated any more.
        words: what a person reads during the pause; empty where asking again does not help.
        after_s: how long the server wants to be left alone; None where it does not say.
        tries: how many attempts it is worth, 0 for as many as there are.
    """

    error: RemoteError
    words: str = ""
    after_s: float | None = None
    tries: int = 0

    @property
    def passing(self) -> bool:
        """Whether to ask again."""
        return bool(self.words)


@dataclass(frozen=True, slots=True)
class Refusal:
    """How a status is told: what it means, and what to do about it."""

    what: str
    remedy: str


_REFUSALS: dict[int, Refusal] = {
    400: Refusal("refused the request", "See what it says; `specviz doctor` shows what this server can do."),
    401: Refusal("refused the key", "Check TARGET_API_KEY, or the key on the page."),
    402: Refusal("wants to be paid first", "Check the account that the key belongs to."),
    403: Refusal("does not allow this", "Check whether the key may use this model, and from here."),
    404: Refusal(
        "does not know the model or the address", "Check the model's name, and that the base URL ends in /v1."
    ),
    405: Refusal("has no completions at this address", "Check the base URL; most end in /v1."),
    413: Refusal("finds the request too large", "Shorten the prompt, or lower K."),
    422: Refusal("refused the request", "See what it says; `specviz doctor` shows what this server can do."),
}
_REFUSED = Refusal("refused the request", "See what it says.")
_NO_KEY = Refusal("asks for a key", "Set TARGET_API_KEY, or give the key on the page.")


def fault_of(status: int, said: str, headers: Mapping[str, str], shown: str, with_key: bool, now: float) -> Fault:
    """The fault that an HTTP status is.

    Args:
        status: 300 to 599.
        said: the server's own words, fit to be shown.
        headers: lower-case names.
        shown: the base URL without secrets.
        with_key: whether a key was sent.
        now: seconds since the epoch.
    """
    ends = f" ({status})" + (f": {said}" if said else ".")
    if status in PASSING or (status >= 500 and status not in NEVER):
        return _passing(status, ends, headers, shown, now)
    if status < 400:
        remedy = "Set the base URL to where it points: a redirected request would lose its body or its key."
        return Fault(RefusedError(f"The server at {shown} points elsewhere{ends}", remedy, status))
    refusal = _NO_KEY if status == 401 and not with_key else _REFUSALS.get(status, _REFUSED)
    return Fault(RefusedError(f"The server at {shown} {refusal.what}{ends}", refusal.remedy, status))


def _passing(status: int, ends: str, headers: Mapping[str, str], shown: str, now: float) -> Fault:
    busy = status in (429, 503, 529)
    what = "is busy" if busy else "fails"
    remedy = (
        "Try again later, or with a lower K: each round may count against a limit."
        if busy
        else "Try again later; the server's own log may say more."
    )
    error = UnreachableError(f"The server at {shown} {what}{ends}", remedy, status)
    words = f"The server {what} ({status}); asking again"
    return Fault(error, words, retry_after_s(headers, now), 3 if status in FAILING else 0)


def broken(what: str, shown: str, remedy: str = "Check the network between here and there.") -> Fault:
    """A connection that was had and lost, or an answer that did not come."""
    return Fault(UnreachableError(f"The server at {shown} {what}.", remedy), f"The server {what}; asking again")


def given_up(patience_s: float, shown: str) -> Fault:
    """An answer that goes on and on."""
    error = UnreachableError(f"The server at {shown} did not finish its answer within {patience_s:g} s.", _SLOW)
    return Fault(error)


def unreachable(why: str, shown: str, remedy: str = "Is the server running, and is the base URL right?") -> Fault:
    """There is no connection to be had."""
    return Fault(UnreachableError(f"Nothing answers at {shown}: {why}.", remedy))


def unusable(what: str, shown: str, remedy: str = "Check the base URL; most end in /v1.") -> Fault:
    """An answer that is none."""
    return Fault(AnswerError(f"The server at {shown} {what}.", remedy, 200))


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """How long a server wants to be left alone: `retry-after-ms`, else `Retry-After` in seconds or as a date."""
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
