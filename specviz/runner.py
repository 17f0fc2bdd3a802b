"""Runs in the background: one thread owns every in-process model, runs queue for it.

An MLX array belongs to the thread that made it, so models are loaded and used in the host's thread alone. A run's
events go to its own bounded queue; whoever shows the run drains it without blocking. Nothing here knows a page.
"""

from __future__ import annotations

import dataclasses
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
from specviz.connection import Secret
from specviz.decoding import speculative
from specviz.environment import environment, secrets
from specviz.errors import RunError, SpecvizError
from specviz.events import Done, Error, Event, Guarantee, TimeSplit
from specviz.metrics import RunState
from specviz.ports import Drafter, OnProgress, Progress, Target
from specviz.prompt import prepare, refuse_empty
from specviz.settings import Sampling, Settings
from specviz.trial import Trial, Tried, try_draft, try_target

log = logging.getLogger(__name__)

#: A run whose events nobody takes for this long ends itself. Longer than a browser lets a hidden tab sleep; a page
#: that knows that its tab was closed stops the run sooner.
ABANDONED_AFTER_S = 90.0
_QUEUE_SIZE = 4096

Phase = Literal["queued", "loading", "baseline", "running", "finished"]


def _nothing_to_close() -> None:
    """A pair in this process holds no connection."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A drafter and a target whose vocabularies were checked.

    Attributes:
        where: the address of a remote target, as it may be shown.
        close: lets go of a connection; to be called when the pair is used no more.
    """

    drafter: Drafter
    target: Target
    where: str = ""
    close: Callable[[], None] = _nothing_to_close


class PairBuilder(Protocol):
    """Makes pairs; belongs to one thread and may keep models loaded between calls."""

    def build(
        self, settings: Settings, on_progress: OnProgress, cancelled: Callable[[], bool], key: Secret | None = None
    ) -> Pair:
        """Load what is missing and check the pairing. `key` opens a remote target; without one, the environment's."""
        ...


class _Queue(Protocol):
    """The host, as a run sees it."""

    def position(self, run: Run) -> int: ...

    def withdraw(self, run: Run | Check) -> None: ...


class Run:
    """One generation: started by `ModelHost.start`, drained by whoever shows it.

    Attributes:
        id: unique. settings, prompt: what was asked for.
        state: everything that happened; changed by `drain` alone, in the caller's thread.
        phase, progress: what the run is doing now, and how far the present wait has come.
    """

    def __init__(
        self,
        settings: Settings,
        prompt: str,
        queue_of: _Queue,
        abandoned_after_s: float = ABANDONED_AFTER_S,
        key: Secret | None = None,
    ) -> None:
        self.id = uuid.uuid4().hex
        self.settings, self.prompt = settings, prompt
        self.state = RunState()
        self.phase: Phase = "queued"
        self.progress: Progress | None = None
        self._key = key
        self._secrets = tuple(map(Secret, secrets(environment(), key)))
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
        return trace.lines(self.settings, list(self._events), secrets(environment(), self._key))

    # What follows is the host's side.

    @property
    def stopped(self) -> bool:
        """Whether somebody asked it to end."""
        return self._stop.is_set()

    def cancelled(self) -> bool:
        """Whether the run should end: it was stopped, or nobody takes its events any more."""
        return self.stopped or time.monotonic() - self._drained_at > self._abandoned_after_s

    def report(self, progress: Progress) -> None:
        """Note how far the present wait has come; one without words says that it is over."""
        self.progress = progress if progress.what else None

    @property
    def key(self) -> Secret | None:
        """What opens the remote target, until the run has finished."""
        return self._key

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
        self.phase, self.progress = "finished", None
        self._key, self._secrets = None, ()
        self._finished.set()


class Check:
    """A test of a target or a draft: started by `ModelHost.test`, looked at by whoever shows it.

    Attributes:
        id: unique. what: which of the two. settings: what was asked for.
        phase, progress: as those of a run.
        result: what came of it; None before the end, after a failure, and when it was stopped.
        error: why it failed.
    """

    def __init__(self, what: Tried, settings: Settings, queue_of: _Queue, key: Secret | None = None) -> None:
        self.id = uuid.uuid4().hex
        self.what, self.settings = what, settings
        self.phase: Phase = "queued"
        self.progress: Progress | None = None
        self.result: Trial | None = None
        self.error: Error | None = None
        self._key = key
        self._queue_of = queue_of
        self._stop = threading.Event()
        self._finished = threading.Event()

    @property
    def live(self) -> bool:
        """Whether more will come of it."""
        return not self._finished.is_set()

    def stop(self, timeout: float = 0.0) -> bool:
        """Ask it to end, at once while it is queued; any number of times.

        Returns:
            Whether it had ended after at most `timeout` seconds.
        """
        self._stop.set()
        self._queue_of.withdraw(self)
        return self._finished.wait(timeout) if timeout > 0 else self._finished.is_set()

    # What follows is the host's side.

    def cancelled(self) -> bool:
        """Whether somebody asked it to end."""
        return self._stop.is_set()

    def report(self, progress: Progress) -> None:
        """Note how far the present wait has come; one without words says that it is over."""
        self.progress = progress if progress.what else None

    def put(self, event: Event) -> bool:
        """Take what went wrong; that it was stopped is no failure."""
        if isinstance(event, Error) and not self.cancelled():
            found = trace.without(event, secrets(environment(), self._key))
            assert isinstance(found, Error)
            self.error = found
        return True

    def ended_early(self) -> Error:
        """What stands for the end of a test that was stopped."""
        return Error("StoppedError", "The test was stopped.")

    def do(self, builder: PairBuilder) -> None:
        """Build what is tested, and try it."""
        if self.cancelled():
            return
        self.phase = "loading"
        settings = self.settings
        if self.what == "draft":
            settings = dataclasses.replace(settings, min_confidence=0.0)
        elif not settings.target.startswith("openai:"):
            # A remote target may take its tokenizer from the draft.
            settings = dataclasses.replace(settings, draft="none")
        pair = builder.build(settings, self.report, self.cancelled, self._key)
        try:
            self.phase = "running"
            if self.what == "target":
                tried = try_target(pair.target, settings, self.report, self.cancelled)
            else:
                tried = try_draft(pair.drafter, pair.target, settings, self.report, self.cancelled)
        finally:
            pair.close()
        text = tried.text
        for secret in secrets(environment(), self._key):
            # A server may answer with what it was sent.
            text = text.replace(secret, "[secret]")
        self.result = dataclasses.replace(tried, text=text)

    def finish(self) -> None:
        """Mark the end: nothing more will come, and no key is needed."""
        self.phase, self.progress = "finished", None
        self._key = None
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
        self._jobs: queue.SimpleQueue[Run | Check | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting: list[Run | Check] = []
        self._current: Run | Check | None = None
        self._closed = False
        self._baselines: dict[tuple[str, str, Sampling], baseline.Baseline] = {}
        self._thread = threading.Thread(target=self._work, name="specviz-models", daemon=True)
        self._thread.start()

    def start(self, settings: Settings, prompt: str, key: Secret | None = None) -> Run:
        """Queue a run.

        Args:
            key: opens a remote target; without one, the environment's does.

        Raises:
            PromptError: the prompt is empty.
            UnknownModelError: settings name a drafter or target that does not exist.
            RunError: the host was closed.
        """
        refuse_empty(prompt)
        self._check(settings)
        run = Run(settings, prompt, self, self._abandoned_after_s, key)
        self._enqueue(run)
        return run

    def test(self, what: Tried, settings: Settings, key: Secret | None = None) -> Check:
        """Queue a test of the target or the draft of these settings.

        Raises:
            UnknownModelError: settings name a drafter or target that does not exist.
            RunError: the host was closed.
        """
        self._check(settings)
        check = Check(what, settings, self, key)
        self._enqueue(check)
        return check

    def _enqueue(self, job: Run | Check) -> None:
        with self._lock:
            if self._closed:
                raise RunError("The model host was closed.", "Restart specviz.")
            self._waiting.append(job)
            self._jobs.put(job)

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

    def withdraw(self, run: Run | Check) -> None:
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
                if isinstance(run, Check):
                    run.do(builder)
                else:
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
        pair = builder.build(settings, run.report, run.cancelled, run.key)
        try:
            self._decode(run, pair)
        finally:
            pair.close()

    def _decode(self, run: Run, pair: Pair) -> None:
        settings = run.settings
        text, prompt_ids = prepare(pair.target, settings, run.prompt)
        run.phase = "baseline"
        measured = None if run.cancelled() else self._baseline(pair, prompt_ids, run)
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
            baseline_tps=measured.tokens_per_second if measured else None,
            per_call_tps=measured.per_call_tps if measured else None,
            cancelled=run.cancelled,
        )
        for event in events:
            if isinstance(event, Done) and event.finish_reason == "stopped" and not run.stopped:
                event = run.abandoned()
            if not run.put(event):
                return

    def _baseline(self, pair: Pair, prompt_ids: list[int], run: Run) -> baseline.Baseline:
        target, key = pair.target, baseline.key(pair.target.name, run.settings.sampling, pair.where)
        if key not in self._baselines:
            found = baseline.measure(target, prompt_ids, run.settings, on_progress=run.report, cancelled=run.cancelled)
            if not found.complete:
                # Cut short, or next to the end of the context: it must not stand for other prompts.
                return found
            self._baselines[key] = found
        return self._baselines[key]
