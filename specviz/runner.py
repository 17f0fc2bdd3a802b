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
from specviz.errors import RunError, SpecvizError
from specviz.events import Done, Error, Event, Guarantee, TimeSplit
from specviz.metrics import RunState
from specviz.ports import Drafter, OnProgress, Progress, Target
from specviz.prompt import prepare, refuse_empty
from specviz.settings import Sampling, Settings

log = logging.getLogger(__name__)

#: A run whose events nobody takes for this long ends itself; a network blip of a browser is shorter.
ABANDONED_AFTER_S = 15.0
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


class Run:
    """One generation: started by `ModelHost.start`, drained by whoever shows it.

    Attributes:
        id: unique. settings, prompt: what was asked for.
        state: everything that happened; changed by `drain` alone, in the caller's thread.
        phase, progress: what the run is doing now, and how far the present wait has come.
    """

    def __init__(self, settings: Settings, prompt: str, abandoned_after_s: float = ABANDONED_AFTER_S) -> None:
        self.id = uuid.uuid4().hex
        self.settings, self.prompt = settings, prompt
        self.state = RunState()
        self.phase: Phase = "queued"
        self.progress: Progress | None = None
        self.ahead: Callable[[], int] = lambda: 0
        self.started_at = time.time()
        self._events: list[Event] = []
        self._queue: queue.Queue[Event] = queue.Queue(_QUEUE_SIZE)
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
        return self.ahead() if self.phase == "queued" else 0

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
        """Ask the run to end within its present round; any number of times, from any thread.

        Returns:
            Whether it had ended after at most `timeout` seconds.
        """
        self._stop.set()
        return self._finished.wait(timeout) if timeout > 0 else self._finished.is_set()

    def trace_lines(self) -> Iterator[str]:
        """The recording so far, line by line."""
        return trace.lines(self.settings, list(self._events))

    # What follows is the host's side.

    def cancelled(self) -> bool:
        """Whether the run should end: it was stopped, or nobody takes its events any more."""
        return self._stop.is_set() or time.monotonic() - self._drained_at > self._abandoned_after_s

    def report(self, progress: Progress) -> None:
        """Note how far the present wait has come."""
        self.progress = progress

    def put(self, event: Event) -> bool:
        """Hand over one event, waiting for room; False once nobody takes them any more."""
        while True:
            try:
                self._queue.put(event, timeout=0.1)
                return True
            except queue.Full:
                if time.monotonic() - self._drained_at > self._abandoned_after_s:
                    return False

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
        run = Run(settings, prompt, self._abandoned_after_s)
        run.ahead = lambda: self._position(run)
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

    def _position(self, run: Run) -> int:
        with self._lock:
            return self._waiting.index(run) if run in self._waiting else 0

    def _work(self) -> None:
        builder: PairBuilder | None = None
        while (run := self._jobs.get()) is not None:
            try:
                if builder is None:
                    builder = self._make_builder()
                self._do(run, builder)
            except SpecvizError as exc:
                # A download that was stopped ends in an error of its own; the person who stopped it sees "stopped".
                run.put(_stopped_early() if run.cancelled() else Error(type(exc).__name__, exc.message, exc.remedy))
            except Exception as exc:
                # A worker that dies silently leaves a page waiting for ever: report, and live on for the next run.
                log.exception("a run failed")
                run.put(
                    Error(
                        "InternalError", f"{type(exc).__name__}: {exc}", "This is a bug in specviz: please report it."
                    )
                )
            finally:
                with self._lock:
                    self._waiting.remove(run)
                run.finish()

    def _do(self, run: Run, builder: PairBuilder) -> None:
        if run.cancelled():
            run.put(_stopped_early())
            return
        settings = run.settings
        run.phase = "loading"
        pair = builder.build(settings, run.report, run.cancelled)
        text, prompt_ids = prepare(pair.target, settings, run.prompt)
        run.phase = "baseline"
        measured = self._baseline(pair.target, prompt_ids, run)
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
            if not run.put(event):
                return

    def _baseline(self, target: Target, prompt_ids: list[int], run: Run) -> float | None:
        key = baseline.key(target.name, run.settings.sampling)
        if key not in self._baselines:
            found = baseline.measure(target, prompt_ids, run.settings, on_progress=run.report, cancelled=run.cancelled)
            if found.tokens_per_second is None or run.cancelled():
                # A measurement that was cut short is not kept.
                return found.tokens_per_second
            self._baselines[key] = found
        return self._baselines[key].tokens_per_second


def _stopped_early() -> Done:
    return Done(
        total_tokens=0, total_accepted=0, total_drafted=0, total_tested=0, total_rounds=0, generated_text="",
        token_ids=(), finish_reason="stopped", total=TimeSplit(), tokens_per_second=None, baseline_tps=None,
        speedup=None, guarantee=Guarantee("UNKNOWN", "Stopped before the first token."),
    )  # fmt: skip
