"""Runs in the background: one thread owns every in-process model, runs queue for it.

An MLX array belongs to the thread that made it, so models are loaded and used in the host's thread alone. A run's
events go to its own bounded queue; whoever shows the run drains it without blocking. Nothing here knows a page.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from specviz import baseline, trace
from specviz.decoding import speculative
from specviz.environment import environment, secrets
from specviz.errors import RunError, SpecvizError
from specviz.events import Done, Error, Event, Guarantee, TimeSplit
from specviz.metrics import RunState
from specviz.ports import Drafter, OnProgress, Progress, Target
from specviz.prompt import prepare, refuse_empty
from specviz.settings import Sampling, Settings

log = logging.getLogger(__name__)

#: A run whose events nobody takes for this long ends itself. Longer than a browser lets a hidden tab sleep; a page
#: that knows that its tab was closed stops the run sooner.
ABANDONED_AFTER_S = 90.0
_QUEUE_SIZE = 4096

Phase = Literal["queued", "loading", "baseline", "running", "finished"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A drafter and a target whose vocabularies were checked."""

    drafter: Drafter
    target: Target


class PairBuilder(Protocol):
    """Makes pairs; belongs to one thread and may keep models loaded between calls."""

    def build(self, settings: Settings, on_progress: OnProgress, cancelled: Callable[[], bool]) -> Pair:
        """Load what is missing and check the pairing."""
        ...


class _Queue(Protocol):
    """The host, as a run sees it."""

    def position(self, run: Run) -> int: ...

    def withdraw(self, run: Run) -> None: ...


class Run:
    """One generation: started by `ModelHost.start`, drained by whoever shows it.

    Attributes:
        id: unique. settings, prompt: what was asked for.
        state: everything that happened; changed by `drain` alone, in the caller's thread.
        phase, progress: what the run is doing now, and how far the present wait has come.
    """

    def __init__(
        self, settings: Settings, prompt: str, queue_of: _Queue, abandoned_after_s: float = ABANDONED_AFTER_S
    ) -> None:
        self.id = uuid.uuid4().hex
        self.settings, self.prompt = settings, prompt
        self.state = RunState()
        self.phase: Phase = "queued"
        self.progress: Progress | None = None
        self._secrets = secrets(environment())
        self._events: list[Event] = []
        self._queue: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._queue_of = queue_of
        self._stop = threading.Event()
        self._finished = threading.Event()
        self._abandoned_after_s = abandoned_after_s
        self._drained_at = time.monotonic()

    @property
    def done(self) -> bool:
        """The run has ended and everything that it gave was drained."""
        return self._finished.is_set() and self._queue.empty()

    @property
    def queue_position(self) -> int:
        """Runs that go first."""
        return self._queue_of.position(self) if self.phase == "queued" else 0

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

    def stop(self, timeout: float = 0.0) -> bool:
        """Ask the run to end within its present round, or at once while it is queued.

        Any number of times, from any thread.

        Returns:
            Whether it had ended after at most `timeout` seconds.
        """
        self._stop.set()
        self._queue_of.withdraw(self)
        return self._finished.wait(timeout) if timeout > 0 else self._finished.is_set()

    def trace_lines(self) -> Iterator[str]:
        """The recording so far, line by line."""
        return trace.lines(self.settings, list(self._events), self._secrets)

    # What follows is the host's side.

    @property
    def stopped(self) -> bool:
        """Whether somebody asked it to end."""
        return self._stop.is_set()

    def cancelled(self) -> bool:
        """Whether the run should end: it was stopped, or nobody takes its events any more."""
        return self.stopped or time.monotonic() - self._drained_at > self._abandoned_after_s

    def report(self, progress: Progress) -> None:
        """Note how far the present wait has come."""
        self.progress = progress

    def put(self, event: Event) -> bool:
        """Hand over one event, waiting for room; False once nobody takes them any more.

        A run that was stopped waits no more: what is left of its round is little.
        """
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
        """Mark the end: nothing more will come."""
        self.phase, self.progress = "finished", None
        self._finished.set()


class ModelHost:
    """The thread that owns the models. Runs are done one after the other, in the order in which they were started.

    Args:
        make_builder: called once, in the host's thread.
        check: refuses settings that name no known drafter or target, before any work.
    """

    def __init__(
        self,
        make_builder: Callable[[], PairBuilder],
        check: Callable[[Settings], None],
        abandoned_after_s: float = ABANDONED_AFTER_S,
    ) -> None:
        self._make_builder, self._check = make_builder, check
        self._abandoned_after_s = abandoned_after_s
        self._jobs: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting: list[Run] = []
        self._current: Run | None = None
        self._closed = False
        self._baselines: dict[tuple[str, Sampling], baseline.Baseline] = {}
        self._thread = threading.Thread(target=self._work, name="specviz-models", daemon=True)
        self._thread.start()

    def start(self, settings: Settings, prompt: str) -> Run:
        """Queue a run.

        Raises:
            PromptError: the prompt is empty.
            UnknownModelError: settings name a drafter or target that does not exist.
            RunError: the host was closed.
        """
        refuse_empty(prompt)
        self._check(settings)
        run = Run(settings, prompt, self, self._abandoned_after_s)
        with self._lock:
            if self._closed:
                raise RunError("The model host was closed.", "Restart specviz.")
            self._waiting.append(run)
            self._jobs.put(run)
        return run

    def close(self, timeout: float = 5.0) -> None:
        """Stop every run and end the thread; any number of times."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
            waiting = list(self._waiting)
        for run in waiting:
            run.stop()
        self._thread.join(timeout)

    def position(self, run: Run) -> int:
        """How many live runs go before this one."""
        with self._lock:
            before = self._waiting[: self._waiting.index(run)] if run in self._waiting else []
        return sum(not r.cancelled() for r in before)

    def withdraw(self, run: Run) -> None:
        """End a run that has not begun; others are left alone."""
        with self._lock:
            if run is self._current or run not in self._waiting:
                return
            self._waiting.remove(run)
        run.put(run.ended_early())
        run.finish()

    def _work(self) -> None:
        builder: PairBuilder | None = None
        while (run := self._jobs.get()) is not None:
            with self._lock:
                if run not in self._waiting:
                    continue
                self._current = run
            try:
                if builder is None:
                    builder = self._make_builder()
                self._do(run, builder)
            except SpecvizError as exc:
                # A download that was stopped ends in an error of its own; the person who stopped it sees "stopped".
                run.put(run.ended_early() if run.cancelled() else Error.of(exc))
            except Exception as exc:
                # A worker that dies silently leaves a page waiting for ever: report, and live on for the next run.
                log.exception("a run failed")
                run.put(Error.of(exc))
            finally:
                with self._lock:
                    self._waiting.remove(run)
                    self._current = None
                run.finish()

    def _do(self, run: Run, builder: PairBuilder) -> None:
        if run.cancelled():
            run.put(run.ended_early())
            return
        settings = run.settings
        run.phase = "loading"
        pair = builder.build(settings, run.report, run.cancelled)
        text, prompt_ids = prepare(pair.target, settings, run.prompt)
        run.phase = "baseline"
        measured = None if run.cancelled() else self._baseline(pair.target, prompt_ids, run)
        run.phase, run.progress = "running", None
        # Every run starts from empty caches, so that equal seeds give equal runs.
        pair.target.reset()
        pair.drafter.reset()
        events = speculative(
            pair.drafter,
            pair.target,
            prompt_ids,
            settings,
            np.random.default_rng(settings.seed),
            prompt_text=text,
            baseline_tps=measured,
            cancelled=run.cancelled,
        )
        for event in events:
            if isinstance(event, Done) and event.finish_reason == "stopped" and not run.stopped:
                event = run.abandoned()
            if not run.put(event):
                return

    def _baseline(self, target: Target, prompt_ids: list[int], run: Run) -> float | None:
        key = baseline.key(target.name, run.settings.sampling)
        if key not in self._baselines:
            found = baseline.measure(target, prompt_ids, run.settings, on_progress=run.report, cancelled=run.cancelled)
            if not found.complete:
                # Cut short, or next to the end of the context: it must not stand for other prompts.
                return found.tokens_per_second
            self._baselines[key] = found
        return self._baselines[key].tokens_per_second
