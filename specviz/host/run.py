"""One generation: a bounded queue of events that the caller drains into a state, at a chosen pace."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing

from specviz.core import session
from specviz.core.baseline import Baselines
from specviz.core.connection import Secret
from specviz.core.events import Done, DraftToken, Error, Event, Metrics, TimeSplit, VerifyResult
from specviz.core.guarantee import NOTHING
from specviz.core.pair import PairBuilder
from specviz.core.settings import Settings
from specviz.host.job import Job, Queue
from specviz.record import trace
from specviz.record.pace import Pace
from specviz.record.state import RunState
from specviz.setup.environment import environment, secrets

#: A run that nobody drains for this long ends. It is longer than a browser suspends a hidden tab; a page that knows
#: that its tab was closed stops the run sooner.
ABANDONED_AFTER_S = 90.0
#: Most runs fit completely, so that a run that is shown slowly or paused does not block the models for other runs.
_QUEUE_SIZE = 16384


class Run(Job):
    """One generation, started by `ModelHost.start` and drained by the caller that shows it.

    Attributes:
        prompt: as the user typed it.
        state: everything that was shown; changed only by `drain`, in the caller's thread.
        pace: limits how many events `drain` shows. It does not affect the models, except that they wait while the queue
            is full.
        rounds_computed: number of rounds that the models have finished, shown or not.
    """

    def __init__(
        self,
        settings: Settings,
        prompt: str,
        queue_of: Queue,
        abandoned_after_s: float = ABANDONED_AFTER_S,
        key: Secret | None = None,
        clock: Callable[[], float] = time.monotonic,
        baselines: Baselines | None = None,
    ) -> None:
        super().__init__(settings, queue_of, key)
        self._baselines = baselines or Baselines()
        self.prompt = prompt
        self.state = RunState()
        self.pace = Pace()
        self.rounds_computed = 0
        self._events: list[Event] = []
        self._whole = 0
        self._queue: deque[Event] = deque()
        self._draining = threading.Lock()
        self._abandoned_after_s = abandoned_after_s
        self._clock = clock
        self._drained_at = clock()

    @property
    def done(self) -> bool:
        """Whether the run has ended and all of its events were drained."""
        return self._finished.is_set() and not self._queue

    @property
    def full(self) -> bool:
        """Whether the queue is full, so that the models wait."""
        return len(self._queue) >= _QUEUE_SIZE

    def drain(self, budget: int = 5000) -> int:
        """Move the events that may be shown now into `state`, at most `budget`. Never blocks. Returns how many.

        After a stop, paused or not, these are all events computed so far, since the final figures include them.
        """
        with self._draining:
            self._drained_at = now = self._clock()
            self.pace.look(now)
            taken = 0
            while taken < budget and self._queue and (self.stopped or self.pace.allows(self._queue[0])):
                self._take(self._queue.popleft())
                taken += 1
            return taken

    def _take(self, event: Event) -> None:
        self._events.append(event)
        if not isinstance(event, DraftToken | VerifyResult):
            self._whole = len(self._events)
        self.state.apply(event)

    def trace_lines(self) -> Iterator[str]:
        """The recording of the complete rounds shown so far, line by line."""
        with self._draining:
            events = self._events[: self._whole]
        return trace.lines(self.settings, events, secrets(environment(), self._key))

    # The methods below are called by the host.

    def do(self, builder: PairBuilder) -> None:
        """Build the pair, measure plain decoding, decode."""
        if self.cancelled():
            self.put(self.ended_early())
            return
        self.phase = "loading"
        with closing(builder.build(self.settings, self.wait, self.key)) as pair:
            self.phase = "baseline"
            began = False
            for event in session.run(
                pair, self.prompt, self.settings, baselines=self._baselines, explain=2, wait=self.wait
            ):
                if not began:
                    began, self.phase, self.progress = True, "running", None
                if isinstance(event, Done) and event.finish_reason == "stopped" and not self.stopped:
                    event = self.abandoned()
                if not self.put(event):
                    self.put(self.abandoned())
                    return
            if not began:
                self.put(self.ended_early())

    def cancelled(self) -> bool:
        """Whether the run should end: it was stopped, or nobody drains its events any more."""
        return self.stopped or self._unwatched()

    def _unwatched(self) -> bool:
        return self._clock() - self._drained_at > self._abandoned_after_s

    def put(self, event: Event) -> bool:
        """Queue one event, waiting while the queue is full; False when nobody drains the queue any more.

        A stopped run does not wait: few events are left in its round. The last event does not wait either, so that
        every run ends with one. Secrets are removed here, since the key is dropped at the end of the run and could not
        be removed from the events later.
        """
        if self._secrets:
            event = trace.without(event, self._secrets)
        while self.full and not isinstance(event, Done | Error) and not self._stop.wait(0.05):
            if self._unwatched():
                return False
        if isinstance(event, Metrics):
            self.rounds_computed += 1
        self._queue.append(event)
        return True

    def ended_early(self) -> Done | Error:
        """The last event of a run that was cancelled before its first token."""
        if not self.stopped:
            return self.abandoned()
        return Done(
            total_tokens=0, total_accepted=0, total_drafted=0, total_tested=0, total_rounds=0, generated_text="",
            token_ids=(), finish_reason="stopped", total=TimeSplit(), tokens_per_second=None, baseline_tps=None,
            speedup=None, guarantee=NOTHING,
        )  # fmt: skip

    def abandoned(self) -> Error:
        """The last event of a run that nobody drained."""
        return Error(
            "Abandoned",
            f"Nobody watched this run for {self._abandoned_after_s:g} seconds, so it was ended.",
            "Run it again and keep the page in view: browsers put hidden tabs to sleep.",
        )
