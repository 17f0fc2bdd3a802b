"""What the host of the models is asked to do: it queues, it can be stopped at any time, and it ends once."""

from __future__ import annotations

import threading
import uuid
from typing import Literal, Protocol

from specviz.core.connection import Secret
from specviz.core.events import Event
from specviz.core.pair import PairBuilder
from specviz.core.ports import Progress, Wait
from specviz.core.settings import Settings

Phase = Literal["queued", "loading", "baseline", "running", "finished"]


class Queue(Protocol):
    """The host, as a job sees it."""

    def position(self, job: Job) -> int:
        """How many live jobs go before this one."""
        ...

    def withdraw(self, job: Job) -> None:
        """End a job that has not begun."""
        ...


class Job:
    """A run or a test.

    Attributes:
        id: unique. settings: what was asked for.
        phase, progress: what it is doing now, and how far the present wait has come.
    """

    def __init__(self, settings: Settings, queue_of: Queue, key: Secret | None = None) -> None:
        self.id = uuid.uuid4().hex
        self.settings = settings
        self.phase: Phase = "queued"
        self.progress: Progress | None = None
        self._key = key
        self._queue_of = queue_of
        self._stop = threading.Event()
        self._finished = threading.Event()

    @property
    def queue_position(self) -> int:
        """Jobs that go first."""
        return self._queue_of.position(self) if self.phase == "queued" else 0

    def stop(self, timeout: float = 0.0) -> bool:
        """Ask it to end: within its present step, or at once while it is queued.

        Any number of times, from any thread.

        Returns:
            Whether it had ended after at most `timeout` seconds.
        """
        self._stop.set()
        self._queue_of.withdraw(self)
        return self._finished.wait(timeout) if timeout > 0 else self._finished.is_set()

    # What follows is the host's side.

    @property
    def key(self) -> Secret | None:
        """What opens the remote target, until the job has finished."""
        return self._key

    @property
    def stopped(self) -> bool:
        """Whether somebody asked it to end."""
        return self._stop.is_set()

    def cancelled(self) -> bool:
        """Whether it should end."""
        return self.stopped

    def report(self, progress: Progress) -> None:
        """Note how far the present wait has come; one without words says that it is over."""
        self.progress = progress if progress.what else None

    @property
    def wait(self) -> Wait:
        """Every wait of the job is told to it, and ends with it."""
        return Wait(self.report, self.cancelled)

    def do(self, builder: PairBuilder) -> None:
        """Do it, in the thread that owns the models."""
        raise NotImplementedError

    def put(self, event: Event) -> bool:
        """Take one event in; False once nobody wants any more."""
        raise NotImplementedError

    def ended_early(self) -> Event:
        """What stands for the end of a job that was cancelled before it gave anything."""
        raise NotImplementedError

    def finish(self) -> None:
        """Mark the end: nothing more will come, and no key is needed."""
        self.phase, self.progress = "finished", None
        self._key = None
        self._finished.set()
