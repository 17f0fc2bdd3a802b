"""Repeats a call while that may help, with pauses that are shown and can be ended at any time.

The retries of the openai SDK are off: its pauses could be neither shown nor ended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import tenacity

from specviz.core.errors import StoppedError
from specviz.core.wait import OnProgress, Progress
from specviz.net.faults import Fault
from specviz.net.flight import POLL_S

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses between attempts where the server does not set them: `first_s`, twice that, and so on, up to `longest_s`.

    Attributes:
        jitter_s: at most so much is added to each pause, so that clients do not come back all at once.
        attempts: after so many a call is given up.
        show_s: how often a pause is shown.
    """

    first_s: float = 0.5
    longest_s: float = 8.0
    jitter_s: float = 0.25
    attempts: int = 6
    show_s: float = 0.5


BACKOFF = Backoff()


class Repeating:
    """Makes calls again.

    Args:
        patience_s: seconds after which a call is given up, pauses included.
        on_progress: receives every pause; an empty text ends it.
        cancelled: checked about twenty times a second during every pause.
        backoff: pauses and attempts.
    """

    def __init__(
        self, patience_s: float, on_progress: OnProgress, cancelled: Callable[[], bool], backoff: Backoff
    ) -> None:
        self._patience_s, self._backoff = patience_s, backoff
        self._on_progress, self._cancelled = on_progress, cancelled

    def call(self, once: Callable[[], T]) -> T:
        """What `once` returns, tried again after each `Fault` that may pass.

        Raises:
            RemoteError: of the last fault.
            StoppedError: `cancelled` returned true.
        """
        too_late = tenacity.stop_before_delay(self._patience_s)
        growing = tenacity.wait_exponential_jitter(
            multiplier=self._backoff.first_s, max=self._backoff.longest_s, jitter=self._backoff.jitter_s
        )

        def wait(state: tenacity.RetryCallState) -> float:
            after_s = _fault(state).after_s
            return growing(state) if after_s is None else after_s

        def enough(state: tenacity.RetryCallState) -> bool:
            tries = _fault(state).tries or self._backoff.attempts
            return state.attempt_number >= min(tries, self._backoff.attempts) or too_late(state)

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda exc: isinstance(exc, Fault) and exc.passing),
            wait=wait,
            stop=enough,
            before_sleep=lambda state: self._pause(state.upcoming_sleep, _fault(state).shown),
            sleep=lambda seconds: None,
            reraise=True,
        )
        try:
            return retrying(once)
        except Fault as exc:
            fault = exc
        self.give_up(fault)

    def give_up(self, fault: Fault) -> NoReturn:
        """Raise the fault's error, without the foreign errors that led to it: they hold requests, and so the key."""
        error = fault.error
        if fault.after_s is not None and fault.after_s >= self._patience_s:
            error = type(error)(
                f"{error.message} It is to be tried again after {fault.after_s:.0f} s.", error.remedy, error.status
            )
        raise error from None

    def check_stop(self) -> None:
        """Raise `StoppedError` if the run was stopped."""
        if self._cancelled():
            raise StoppedError("The run was stopped while it waited for the server.")

    def _pause(self, seconds: float, text: str) -> None:
        began, shown = time.monotonic(), -math.inf
        try:
            while (waited := time.monotonic() - began) < seconds:
                self.check_stop()
                if waited - shown >= self._backoff.show_s:
                    shown = waited
                    self._on_progress(Progress(text, int(waited), math.ceil(seconds), "s"))
                time.sleep(min(POLL_S, seconds - waited))
        finally:
            if shown >= 0:
                self._on_progress(Progress(""))


def _fault(state: tenacity.RetryCallState) -> Fault:
    exc = state.outcome.exception() if state.outcome else None
    if not isinstance(exc, Fault):
        raise TypeError(f"only a fault is repeated, not {exc!r}")
    return exc
