"""Runs in the background: one thread owns every in-process model, runs queue for it.

An MLX array belongs to the thread that made it, so models are loaded and used in the host's thread alone. A run's
events go to its own bounded queue; whoever shows the run drains it without blocking. Nothing here knows a page.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

import numpy as np

from specviz.core import baseline
from specviz.core.connection import Secret
from specviz.core.decoding import speculative
from specviz.core.errors import RunError, SpecvizError
from specviz.core.events import Done, Error
from specviz.core.pair import Pair, PairBuilder
from specviz.core.ports import Distant, Target
from specviz.core.prompt import prepare, refuse_empty
from specviz.core.settings import Settings
from specviz.host.check import Check
from specviz.host.job import Job
from specviz.host.run import ABANDONED_AFTER_S, Run
from specviz.host.task import Task
from specviz.host.trial import Tried

log = logging.getLogger(__name__)


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
        self._jobs: queue.SimpleQueue[Run | Task | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting: list[Job] = []
        self._current: Job | None = None
        self._closed = False
        self._baselines: dict[baseline.Key, baseline.Baseline] = {}
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
        self.enqueue(run)
        return run

    def test(self, what: Tried, settings: Settings, key: Secret | None = None) -> Check:
        """Queue a test of the target or the draft of these settings.

        Raises:
            UnknownModelError: settings name a drafter or target that does not exist.
            RunError: the host was closed.
        """
        self._check(settings)
        check = Check(what, settings, self, key)
        self.enqueue(check)
        return check

    def enqueue(self, job: Run | Task) -> None:
        """Queue a job that knows this host.

        Raises:
            RunError: the host was closed.
        """
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

    def position(self, job: Job) -> int:
        """How many live jobs go before this one."""
        with self._lock:
            before = self._waiting[: self._waiting.index(job)] if job in self._waiting else []
        return sum(not earlier.cancelled() for earlier in before)

    def withdraw(self, job: Job) -> None:
        """End a job that has not begun; others are left alone."""
        with self._lock:
            if job is self._current or job not in self._waiting:
                return
            self._waiting.remove(job)
        job.put(job.ended_early())
        job.finish()

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
                if isinstance(run, Run):
                    self._do(run, builder)
                else:
                    run.do(builder)
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
        target = pair.target
        if not isinstance(target, Distant):
            return self._measured(baseline.measure, target, pair.where, prompt_ids, run)
        # Apart, so that what was measured without the network stands for every network in front of it.
        near = self._measured(baseline.measure, target.near, pair.where, prompt_ids, run)
        network = (target.rtt_ms, target.jitter_ms)
        far = self._measured(baseline.measure_calls, target, pair.where, prompt_ids, run, network)
        return baseline.both(near, far)

    def _measured(
        self,
        measure: baseline.Measure,
        target: Target,
        where: str,
        prompt_ids: list[int],
        run: Run,
        network: tuple[float, float] = (0.0, 0.0),
    ) -> baseline.Baseline:
        key = baseline.key(target.name, run.settings.sampling, where, network)
        if key not in self._baselines:
            found = measure(target, prompt_ids, run.settings, on_progress=run.report, cancelled=run.cancelled)
            if not found.complete:
                # Cut short, or next to the end of the context: it must not stand for other prompts.
                return found
            self._baselines[key] = found
        return self._baselines[key]
