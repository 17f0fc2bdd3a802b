"""A job that ends with a result or an error, not with a stream of events."""

from __future__ import annotations

from specviz.core.connection import Secret
from specviz.core.events import Error, Event
from specviz.core.settings import Settings
from specviz.host.job import Job, Queue


class Task(Job):
    """A test or a benchmark.

    Attributes:
        error: why it failed; None otherwise.
    """

    def __init__(self, settings: Settings, queue_of: Queue, key: Secret | None = None) -> None:
        super().__init__(settings, queue_of, key)
        self.error: Error | None = None

    @property
    def live(self) -> bool:
        """Whether it has not finished yet."""
        return not self._finished.is_set()

    # The methods below are called by the host.

    def put(self, event: Event) -> bool:
        """Store an error; the error of a stopped task is ignored."""
        if isinstance(event, Error) and not self.cancelled():
            self.error = self._secrets.strike_in(event)
        return True

    def ended_early(self) -> Error:
        """The last event of a stopped task."""
        return Error("StoppedError", "It was stopped.")
