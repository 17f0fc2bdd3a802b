"""A sweep as a job of the host: it waits in the queue, can be paused and stopped, and saves what it measures."""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from specviz.bench.sweep.results import Bench, dumps, read, write
from specviz.bench.sweep.sweep import Sweep
from specviz.core.connection import Secret
from specviz.core.errors import SettingsError
from specviz.core.pair import PairBuilder
from specviz.host.job import Queue
from specviz.host.task import Task
from specviz.record.claim import claimed

#: The file is written at most this often: with many runs it has some hundred kilobytes.
SAVE_EVERY_S = 5.0


class BenchJob(Task):
    """A sweep for `ModelHost.enqueue`.

    Attributes:
        bench: the plan and what was measured so far; the host's thread changes it, see `snapshot`.
        path: where it is saved while it runs; None: it is not saved. A file that is there already is read again: others
            may have gone on with it.
        unsaved: why the file could not be written; empty while it can.

    Raises:
        RunError: another page or process writes the file.
        SettingsError: the file is damaged.
    """

    def __init__(self, bench: Bench, queue_of: Queue, path: Path | None = None, key: Secret | None = None) -> None:
        super().__init__(bench.plan.settings, queue_of, key)
        self.bench, self.path = bench, path
        self.unsaved = ""
        self._paused = threading.Event()
        self._saved_at = 0.0
        self._claim = ExitStack()
        if path is None:
            return
        with suppress(OSError):  # `unsaved` will say so
            self._claim.enter_context(claimed(path, "the Benchmark page"))
        if os.path.exists(path):
            with ExitStack() as until_read:
                until_read.callback(self._claim.close)
                self.bench = read(path)
                until_read.pop_all()

    @property
    def paused(self) -> bool:
        """Whether it waits, or will wait after the current run, until it is resumed."""
        return self._paused.is_set()

    def pause(self) -> None:
        """Stop after the current run until `resume`."""
        self._paused.set()

    def resume(self) -> None:
        """Continue."""
        self._paused.clear()

    def snapshot(self) -> Bench:
        """A copy of the bench as it is now; no thread changes it."""
        bench = self.bench
        return replace(
            bench,
            trials=list(bench.trials),
            failures=list(bench.failures),
            left_out=dict(bench.left_out),
            answers=dict(bench.answers),
        )

    # The host's side.

    def do(self, builder: PairBuilder) -> None:
        """Measure what is missing, and save it from time to time."""
        self.phase = "running"

        sweep = Sweep(
            self.bench,
            lambda settings: builder.build(settings, self.wait, self._key),
            self.wait,
            lambda: self.paused,
            self._secrets,
        )
        try:
            for _ in sweep.run():
                if time.monotonic() - self._saved_at > SAVE_EVERY_S:
                    self._save()
        finally:
            self._save()

    def finish(self) -> None:
        """Let others write the file, and mark the job as finished."""
        self._claim.close()
        super().finish()

    def _save(self) -> None:
        if self.path is None:
            return
        self._saved_at = time.monotonic()
        try:
            write(dumps(self.bench), self.path)
            self.unsaved = ""
        except SettingsError as exc:
            # The measurements are still in memory, and can be downloaded.
            self.unsaved = exc.message
