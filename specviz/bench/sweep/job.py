"""A sweep in the background: it queues among the runs, can be paused and stopped, and keeps what is done."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

from specviz.bench.sweep.results import Bench, dumps, write
from specviz.bench.sweep.sweep import Sweep
from specviz.core.connection import Secret
from specviz.core.errors import SettingsError
from specviz.core.events import Error
from specviz.core.pair import PairBuilder
from specviz.host.job import Queue
from specviz.host.task import Task

#: Written at most this often: a file of many runs is some hundred kilobytes.
SAVE_EVERY_S = 5.0


class BenchJob(Task):
    """A sweep that `ModelHost.enqueue` was given.

    Attributes:
        bench: what is to be measured, and what was; changed by the host's thread, see `snapshot`.
        path: where it is saved as it goes; None for nowhere.
        unsaved: why the file could not be written; empty while it can.
    """

    def __init__(self, bench: Bench, queue_of: Queue, path: Path | None = None, key: Secret | None = None) -> None:
        super().__init__(bench.plan.settings, queue_of, key)
        self.bench, self.path = bench, path
        self.unsaved = ""
        self._paused = threading.Event()
        self._saved_at = 0.0

    @property
    def paused(self) -> bool:
        """Whether it waits to be resumed, after the run that it is at."""
        return self._paused.is_set()

    def pause(self) -> None:
        """Measure no further run for now."""
        self._paused.set()

    def resume(self) -> None:
        """Go on."""
        self._paused.clear()

    def snapshot(self) -> Bench:
        """The bench as it is now, which no thread changes any more."""
        bench = self.bench
        return replace(bench, trials=list(bench.trials), failures=list(bench.failures), left_out=dict(bench.left_out))

    # What follows is the host's side.

    def do(self, builder: PairBuilder) -> None:
        """Measure what is missing, and save it as it comes."""
        self.phase = "running"

        sweep = Sweep(
            self.bench,
            lambda settings: builder.build(settings, self.report, self.cancelled, self._key),
            self.report,
            self.cancelled,
            lambda: self.paused,
        )
        try:
            for _ in sweep.run():
                self._hide_secrets()
                if time.monotonic() - self._saved_at > SAVE_EVERY_S:
                    self._save()
        finally:
            self._save()

    def _hide_secrets(self) -> None:
        for i, failure in enumerate(self.bench.failures):
            told = self.without_secrets(Error("", failure.message, failure.remedy))
            self.bench.failures[i] = replace(failure, message=told.message, remedy=told.remedy)

    def _save(self) -> None:
        if self.path is None:
            return
        self._saved_at = time.monotonic()
        try:
            write(dumps(self.bench), self.path)
            self.unsaved = ""
        except SettingsError as exc:
            # What was measured is still there, and can be downloaded.
            self.unsaved = exc.message
