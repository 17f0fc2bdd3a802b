"""The owner of all in-process models: runs, tests and benchmarks queue for its thread.

The events of a run go to its own bounded queue, which the caller drains without blocking. Nothing here depends on the
user interface.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from specviz.core.baseline import Baselines
from specviz.core.connection import Secret
from specviz.core.errors import SpecvizError
from specviz.core.events import Error
from specviz.core.pair import PairBuilder
from specviz.core.prompt import refuse_empty
from specviz.core.settings import Settings
from specviz.host.check import Check
from specviz.host.job import Job
from specviz.host.run import ABANDONED_AFTER_S, Run
from specviz.host.thread import OwnerThread
from specviz.host.trial import Tried

log = logging.getLogger(__name__)


class ModelHost:
    """Runs jobs one at a time, in the order in which they were started.

    Args:
        make_builder: called once, in the thread that owns the models.
        check: refuses settings that name an unknown drafter or target, before any work.
    """

    def __init__(
        self,
        make_builder: Callable[[], PairBuilder],
        check: Callable[[Settings], None],
        abandoned_after_s: float = ABANDONED_AFTER_S,
    ) -> None:
        self._make_builder, self._check = make_builder, check
        self._abandoned_after_s = abandoned_after_s
        self._builder: PairBuilder | None = None
        self._baselines = Baselines()
        self._thread = OwnerThread("specviz-models")
        self._lock = threading.Lock()
        #: Jobs that have not ended, in order.
        self._jobs: dict[Job, Future[None]] = {}

    def start(self, settings: Settings, prompt: str, key: Secret | None = None) -> Run:
        """Queue a run.

        Args:
            key: API key of a completions target; default: the one of the environment.

        Raises:
            PromptError: the prompt is empty.
            UnknownModelError: settings name a drafter or target that does not exist.
            RunError: the host was closed.
        """
        refuse_empty(prompt)
        self._check(settings)
        run = Run(settings, prompt, self, self._abandoned_after_s, key, baselines=self._baselines)
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

    def enqueue(self, job: Job) -> None:
        """Queue a job that was created with this host as its queue.

        Raises:
            RunError: the host was closed.
        """
        with self._lock:
            future = self._jobs[job] = self._thread.submit(lambda: self._do(job))
        future.add_done_callback(lambda ended: self._end(job, withdrawn=ended.cancelled()))

    def close(self, timeout: float = 5.0) -> None:
        """Stop every job and end the thread. May be called several times."""
        with self._lock:
            jobs = list(self._jobs)
        for job in jobs:
            job.stop()
        self._thread.close(timeout)

    def position(self, job: Job) -> int:
        """Number of live jobs queued before this one."""
        with self._lock:
            jobs = list(self._jobs)
        before = jobs[: jobs.index(job)] if job in jobs else []
        return sum(not earlier.cancelled() for earlier in before)

    def withdraw(self, job: Job) -> None:
        """End a job if it has not started."""
        with self._lock:
            future = self._jobs.get(job)
        if future is not None:
            future.cancel()

    def _do(self, job: Job) -> None:
        """Run a job, in the thread that owns the models."""
        try:
            if self._builder is None:
                self._builder = self._make_builder()
            job.do(self._builder)
        except SpecvizError as exc:
            # A stopped download ends in an error of its own, but the user who stopped it sees "stopped".
            job.put(job.ended_early() if job.cancelled() else Error.of(exc))
        except Exception as exc:
            # If this thread ended silently, a page would wait for ever: report the error and go on with the next job.
            log.exception("a job failed")
            job.put(Error.of(exc))

    def _end(self, job: Job, withdrawn: bool) -> None:
        with self._lock:
            self._jobs.pop(job, None)
        if withdrawn:
            job.put(job.ended_early())
        job.finish()
