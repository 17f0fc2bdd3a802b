"""A blocking call in a thread of its own, so that whoever waits for it can end it at any time."""

from __future__ import annotations

import queue
import socket
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")

#: How often a waiting caller looks whether it should go on waiting, in seconds.
POLL_S = 0.05
#: How long a broken call may take to notice. One that is still looking a name up or connecting cannot be woken: it
#: ends by itself, after the time-out of connecting.
END_S = 0.5


class Wires:
    """The sockets of a client, so that a call that waits on one can be woken from another thread.

    Closing a socket does not wake who waits on it; shutting it down does.
    """

    def __init__(self) -> None:
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._lock = threading.Lock()

    def tracer(self, ended: threading.Event) -> Callable[[str, Mapping[str, Any]], None]:
        """A `trace` extension of httpcore2 for one call: it learns of each connection that the call makes."""

        def trace(name: str, info: Mapping[str, Any]) -> None:
            if name.endswith(("connect_tcp.complete", "start_tls.complete")):
                with self._lock:
                    self._sockets.add(info["return_value"].get_extra_info("socket"))
                if ended.is_set():
                    self.cut()

        return trace

    def cut(self) -> None:
        """End whatever goes on on any of them."""
        with self._lock:
            for one in self._sockets:
                # The plain shutdown: that of a TLS socket would take the TLS away under the thread that reads it.
                with suppress(OSError):
                    socket.socket.shutdown(one, socket.SHUT_RDWR)


class Flight(Generic[T]):
    """One call, which ends when its caller wants no more of it.

    Args:
        work: does the call in the thread, and hands over each part as soon as it is there.
        wires: of the client that it uses.
    """

    def __init__(self, work: Callable[[Flight[T]], None], wires: Wires) -> None:
        self._work, self._wires = work, wires
        # Each part in a tuple; None behind the last one.
        self._parts: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="specviz-call", daemon=True)
        self.ended = threading.Event()

    def put(self, part: T) -> None:
        """Hand a part over."""
        self._parts.put((part,))

    def parts(self, check: Callable[[], None]) -> Generator[T]:
        """What comes, as it comes. However this ends, the call has ended then.

        Args:
            check: called some twenty times a second; what it raises ends the call.

        Raises:
            Exception: whatever the work raised.
        """
        check()
        checked = time.monotonic()
        self._thread.start()
        try:
            while True:
                part = self._next()
                if time.monotonic() - checked >= POLL_S:
                    check()
                    checked = time.monotonic()
                if part is None:
                    break
                if part:
                    yield part[0]
        finally:
            self._end()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _next(self) -> tuple[T] | tuple[()] | None:
        try:
            return self._parts.get(timeout=POLL_S)
        except queue.Empty:
            return ()

    def _run(self) -> None:
        try:
            self._work(self)
        except Exception as exc:
            self._failure = exc
        finally:
            self.ended.set()
            self._parts.put(None)

    def _end(self) -> None:
        if not self.ended.is_set():
            self.ended.set()
            self._wires.cut()
        self._thread.join(END_S)
