"""Runs a blocking call in a thread of its own, so that its caller can end it at any time."""

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

#: How often a waiting caller checks whether to go on, in seconds.
POLL_S = 0.05
#: How long to wait for the thread of a call that was ended, in seconds. A thread that is still resolving a name or
#: connecting cannot be woken: it ends by itself, after the time-out of connecting.
END_S = 0.5


class Wires:
    """The sockets of a client, so that a call that waits on one can be woken from another thread.

    Closing a socket does not wake a thread that waits on it; shutting it down does.
    """

    def __init__(self) -> None:
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._lock = threading.Lock()

    def tracer(self, ended: threading.Event) -> Callable[[str, Mapping[str, Any]], None]:
        """A `trace` extension of httpcore2 for one call, which records each connection that the call makes."""

        def trace(name: str, info: Mapping[str, Any]) -> None:
            if name.endswith(("connect_tcp.complete", "start_tls.complete")):
                with self._lock:
                    self._sockets.add(info["return_value"].get_extra_info("socket"))
                if ended.is_set():
                    self.cut()

        return trace

    def cut(self) -> None:
        """Shut all of them down, which ends every call on them."""
        with self._lock:
            for one in self._sockets:
                # The shutdown of the plain socket: that of ssl.SSLSocket would unwrap TLS while another thread reads.
                with suppress(OSError):
                    socket.socket.shutdown(one, socket.SHUT_RDWR)


class Flight(Generic[T]):
    """One call in a thread, which ends as soon as its caller stops iterating.

    Args:
        work: makes the call in the thread, and passes each part to `put` as soon as it is there.
        wires: the sockets of the client that it uses.
    """

    def __init__(self, work: Callable[[Flight[T]], None], wires: Wires) -> None:
        self._work, self._wires = work, wires
        # Each part in a tuple, then None.
        self._parts: queue.SimpleQueue[tuple[T] | None] = queue.SimpleQueue()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="specviz-call", daemon=True)
        self.ended = threading.Event()

    def put(self, part: T) -> None:
        """Pass a part to the caller."""
        self._parts.put((part,))

    def parts(self, check: Callable[[], None]) -> Generator[T]:
        """The parts, as they come. When this generator ends or is closed, the call has ended too.

        Args:
            check: called about twenty times a second; an error that it raises ends the call.

        Raises:
            Exception: the work's own error.
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
