"""A job of the model host: it is queued, can be stopped at any time, and ends exactly once."""

from __future__ import annotations

import threading
import uuid
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Literal, Protocol

from specviz.core.connection import Secret
from specviz.core.events import Event
from specviz.core.pair import PairBuilder
from specviz.core.secrets import NO_SECRETS
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait
from specviz.setup.environment import environment, secrets

Phase = Literal["queued", "loading", "baseline", "running", "finished"]


class Queue(Protocol):
    """The part of the host that a job uses."""

    def position(self, job: Job) -> int:
        """Number of live jobs queued before this one."""
        ...

    def withdraw(self, job: Job) -> None:
        """End a job that has not started."""
        ...


class Job(ABC):
    """A run, a test or a benchmark.

    A server may repeat a key in anything that it says. Whatever a job stores for others to see passes through
    `_secrets` before it is stored: it can be seen at once, and the key is dropped at the end.

    Attributes:
        id: unique. settings: of the job.
        phase, progress: the current phase, and the progress of the current wait.
    """

    def __init__(self, settings: Settings, queue_of: Queue, key: Secret | None = None) -> None:
        self.id = uuid.uuid4().hex
        self.settings = settings
        self.phase: Phase = "queued"
        self.progress: Progress | None = None
        self._key = key
        self._secrets = secrets(environment(), key)
        self._queue_of = queue_of
        self._stop = threading.Event()
        self._finished = threading.Event()

    @property
    def queue_position(self) -> int:
        """Number of live jobs before this one; 0 once it has started."""
        return self._queue_of.position(self) if self.phase == "queued" else 0

    def stop(self, timeout: float = 0.0) -> bool:
        """Request the end: after the current step, or at once while queued.

        May be called several times and from any thread.

        Returns:
            Whether the job ended within `timeout` seconds.
        """
        self._stop.set()
        self._queue_of.withdraw(self)
        return self._finished.wait(timeout) if timeout > 0 else self._finished.is_set()

    # The methods below are called by the host.

    @property
    def key(self) -> Secret | None:
        """The API key of the completions target; None once the job has finished."""
        return self._key

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def cancelled(self) -> bool:
        """Whether the job should end."""
        return self.stopped

    def report(self, progress: Progress) -> None:
        """Store the progress of the current wait; an empty `what` means that the wait is over."""
        self.progress = replace(progress, what=self._secrets.strike(progress.what)) if progress.what else None

    @property
    def wait(self) -> Wait:
        """Callbacks for every wait of the job: progress is stored in it, and `stop` cancels the wait."""
        return Wait(self.report, self.cancelled)

    @abstractmethod
    def do(self, builder: PairBuilder) -> None:
        """Run the job, in the thread that owns the models."""

    @abstractmethod
    def put(self, event: Event) -> bool:
        """Hand over one event; False when no more events are wanted."""

    @abstractmethod
    def ended_early(self) -> Event:
        """The last event of a job that was cancelled before its first event."""

    def finish(self) -> None:
        """Mark the job as finished, and drop its key and secrets."""
        self.phase, self.progress = "finished", None
        self._key, self._secrets = None, NO_SECRETS
        self._finished.set()
