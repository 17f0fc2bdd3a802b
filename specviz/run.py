"""One generation, as whoever shows it sees it: a bounded queue that is drained into a state."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator

from specviz import trace
from specviz.connection import Secret
from specviz.environment import environment, secrets
from specviz.events import Done, Error, Event, Guarantee, TimeSplit
from specviz.job import Job, Queue
from specviz.metrics import RunState
from specviz.settings import Settings

#: A run whose events nobody takes for this long ends itself. Longer than a browser lets a hidden tab sleep; a page
#: that knows that its tab was closed stops the run sooner.
ABANDONED_AFTER_S = 90.0
_QUEUE_SIZE = 4096


class Run(Job):
    """One generation: started by `ModelHost.start`, drained by whoever shows it.

    Attributes:
        prompt: what was asked for, with `settings`.
        state: everything that happened; changed by `drain` alone, in the caller's thread.
    """

    def __init__(
        self,
        settings: Settings,
        prompt: str,
        queue_of: Queue,
        abandoned_after_s: float = ABANDONED_AFTER_S,
        key: Secret | None = None,
    ) -> None:
        super().__init__(settings, queue_of, key)
        self.prompt = prompt
        self.state = RunState()
        self._secrets = tuple(map(Secret, secrets(environment(), key)))
        self._events: list[Event] = []
        self._queue: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._abandoned_after_s = abandoned_after_s
        self._drained_at = time.monotonic()

    @property
    def done(self) -> bool:
        """The run has ended and everything that it gave was drained."""
        return self._finished.is_set() and self._queue.empty()

    def drain(self, budget: int = 5000) -> int:
        """Take what has arrived into `state`, at most `budget` events. Never blocks. Returns how many."""
        self._drained_at = time.monotonic()
        for taken in range(budget):
            try:
                event = self._queue.get_nowait()
            except queue.Empty:
                return taken
            self._events.append(event)
            self.state.apply(event)
        return budget

    def trace_lines(self) -> Iterator[str]:
        """The recording so far, line by line."""
        return trace.lines(self.settings, list(self._events), secrets(environment(), self._key))

    # What follows is the host's side.

    def cancelled(self) -> bool:
        """Whether the run should end: it was stopped, or nobody takes its events any more."""
        return self.stopped or time.monotonic() - self._drained_at > self._abandoned_after_s

    def put(self, event: Event) -> bool:
        """Hand over one event, waiting for room; False once nobody takes them any more.

        A run that was stopped waits no more: what is left of its round is little. Nothing secret is in what is handed
        over, since the key is forgotten at the end and could not be struck out later.
        """
        if self._secrets:
            event = trace.without(event, [s.value for s in self._secrets])
        while self._queue.qsize() >= _QUEUE_SIZE and not self._stop.wait(0.05):
            if self.cancelled():
                return False
        self._queue.put(event)
        return True

    def ended_early(self) -> Done | Error:
        """The last event of a run that was cancelled before its first token."""
        if not self.stopped:
            return self.abandoned()
        return Done(
            total_tokens=0, total_accepted=0, total_drafted=0, total_tested=0, total_rounds=0, generated_text="",
            token_ids=(), finish_reason="stopped", total=TimeSplit(), tokens_per_second=None, baseline_tps=None,
            speedup=None, guarantee=Guarantee("UNKNOWN", "Stopped before the first token."),
        )  # fmt: skip

    def abandoned(self) -> Error:
        """The last event of a run that nobody watched."""
        return Error(
            "Abandoned",
            f"Nobody watched this run for {self._abandoned_after_s:g} seconds, so it was ended.",
            "Run it again and keep the page in view: browsers put hidden tabs to sleep.",
        )

    def finish(self) -> None:
        """Mark the end: nothing more will come, and no key is needed."""
        self._secrets = ()
        super().finish()
