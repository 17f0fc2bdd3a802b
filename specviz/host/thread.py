"""One long-lived thread that runs functions one after the other.

An MLX array belongs to the thread that created it, so all work with models runs in one thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from specviz.core.errors import RunError

T = TypeVar("T")


class OwnerThread:
    """Runs functions in the order in which they were submitted.

    Unlike the threads of a `ThreadPoolExecutor`, this thread does not keep the process alive, so specviz can exit
    during a run.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Queue a function.

        Returns:
            A future of its result or exception; `cancel` removes the function while it is queued.

        Raises:
            RunError: the thread was closed.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RunError("The model host was closed.", "Restart specviz.")
            self._work.put((future, function))
        return future

    def close(self, timeout: float = 5.0) -> None:
        """End the thread after all submitted functions. May be called several times.

        Args:
            timeout: seconds to wait for the end.
        """
        with self._lock:
            if not self._closed:
                self._closed = True
                self._work.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            future, function = work
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as exc:
                future.set_exception(exc)
            # Drop all references to the last job while the thread waits for the next one.
            del work, future, function
