import socket
import threading
from collections.abc import Callable

import pytest

from specviz.net.flight import POLL_S, Flight, Wires


class Enough(Exception):
    pass


def after(calls: int) -> Callable[[], None]:
    """A check that raises at this call."""
    left = [calls]

    def check() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Enough

    return check


def flying() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "specviz-call"]


def test_parts_come_in_order_and_a_failure_after_them() -> None:
    def work(flight: Flight[int]) -> None:
        for i in range(3):
            flight.put(i)
        raise KeyError("broken")

    came: list[int] = []
    with pytest.raises(KeyError, match="broken"):
        for part in Flight(work, Wires()).parts(lambda: None):
            came.append(part)
    assert came == [0, 1, 2]


def test_a_check_that_fails_at_once_starts_nothing() -> None:
    started = threading.Event()
    with pytest.raises(Enough):
        list(Flight(lambda flight: started.set(), Wires()).parts(after(1)))
    assert not started.is_set()


def test_it_is_checked_while_parts_come_without_a_pause() -> None:
    def work(flight: Flight[int]) -> None:
        for i in range(1000):
            flight.put(i)

    busy = threading.Event()
    with pytest.raises(Enough):
        for _ in Flight(work, Wires()).parts(after(3)):
            busy.wait(POLL_S / 20)
    assert not flying()


def test_its_thread_is_waited_for() -> None:
    def work(flight: Flight[int]) -> None:
        flight.ended.wait(30)
        threading.Event().wait(0.1)  # the thread needs a moment to end

    with pytest.raises(Enough):
        list(Flight(work, Wires()).parts(after(2)))
    assert not flying()


def test_one_that_cannot_be_woken_is_left_to_end_by_itself() -> None:
    deaf = threading.Event()
    with pytest.raises(Enough):
        list(Flight(lambda flight: bool(deaf.wait(30)), Wires()).parts(after(2)))  # type: ignore[arg-type]
    (thread,) = flying()
    deaf.set()
    thread.join(10)
    assert not thread.is_alive() and thread.daemon


class Stream:
    """The part of httpcore2's stream that is used."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def get_extra_info(self, name: str) -> socket.socket | None:
        return self._sock if name == "socket" else None


def test_a_call_that_waits_on_a_socket_is_woken() -> None:
    wires = Wires()
    ours, theirs = socket.socketpair()
    got: list[bytes] = []

    def work(flight: Flight[int]) -> None:
        wires.tracer(flight.ended)("connection.connect_tcp.complete", {"return_value": Stream(ours)})
        got.append(ours.recv(1))

    with ours, theirs, pytest.raises(Enough):
        list(Flight(work, wires).parts(after(2)))
    assert got == [b""] and not flying()


def test_a_connection_that_comes_too_late_is_cut_at_once() -> None:
    wires, ended = Wires(), threading.Event()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(10)
        trace = wires.tracer(ended)
        trace("connection.connect_tcp.started", {})
        ended.set()
        trace("connection.start_tls.complete", {"return_value": Stream(ours)})
        assert theirs.recv(1) == b""
    wires.cut()  # a closed socket is no error
