"""A job that knows itself what is to be done, and ends in a result of its own or in an error."""

from __future__ import annotations

from specviz.core.connection import Secret
from specviz.core.events import Error, Event
from specviz.core.settings import Settings
from specviz.host.job import Job, Queue
from specviz.record import trace
from specviz.setup.environment import environment, secrets


class Task(Job):
    """A test or a benchmark.

    Attributes:
        error: why it failed.
    """

    def __init__(self, settings: Settings, queue_of: Queue, key: Secret | None = None) -> None:
        super().__init__(settings, queue_of, key)
        self.error: Error | None = None

    @property
    def live(self) -> bool:
        """Whether more will come of it."""
        return not self._finished.is_set()

    # What follows is the host's side.

    def put(self, event: Event) -> bool:
        """Take what went wrong; that it was stopped is no failure."""
        if isinstance(event, Error) and not self.cancelled():
            self.error = self.without_secrets(event)
        return True

    def without_secrets(self, error: Error) -> Error:
        """The same with nothing in it that opens a server: one may answer with what it was sent."""
        found = trace.without(error, secrets(environment(), self._key))
        assert isinstance(found, Error)
        return found

    def ended_early(self) -> Error:
        """What stands for the end of one that was stopped."""
        return Error("StoppedError", "It was stopped.")
