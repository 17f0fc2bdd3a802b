"""The edges of a process: standard streams that are closed, full or no longer read, and signals that end it.

It imports next to nothing: a Ctrl-C may come while the other modules are being loaded.
"""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from specviz.core.errors import OutputError

#: Exit code after Ctrl-C, as in shells: 128 plus the number of the signal.
INTERRUPTED = 130

#: What asks a process to end: Ctrl-C, `kill`, a terminal that was closed.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Handler = Callable[[int, FrameType | None], Any] | int | None

_last = INTERRUPTED


def open_streams() -> None:
    """Make every standard stream usable, whatever the process was started with.

    A closed one is opened on the null device; otherwise the next file that is opened would get its number, and what
    other code prints. Characters that the terminal's encoding lacks are escaped.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    sys.stdout = _text(1, sys.stdout, _Output)
    sys.stderr = _text(2, sys.stderr, _Diagnostics)


def _text(number: int, given: Any, raw: type[io.FileIO]) -> io.TextIOWrapper:
    """The stream over `raw`, with the properties of the given one; None where it was closed."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw(number, "wb", closefd=False)),
        encoding=given.encoding if given else "utf-8",
        errors="backslashreplace",
        line_buffering=bool(given) and (given.line_buffering or given.write_through),
    )


class _Output(io.FileIO):
    """Standard output: says that it cannot be written, once, as no other file."""

    _failed = False

    def write(self, data: Any, /) -> int:
        if not self._failed:
            try:
                while (written := super().write(data)) is None:  # a full pipe that does not block
                    select.select([], [self], [])
                return written
            except OSError as exc:
                self._failed = True
                raise OutputError(
                    f"Standard output cannot be written: {os.strerror(exc.errno or 0)}.",
                    "Send the output somewhere else.",
                    unread=exc.errno == errno.EPIPE,
                ) from exc
        return memoryview(data).nbytes


class _Diagnostics(io.FileIO):
    """Standard error: what cannot be said there is not said, and changes nothing else."""

    def write(self, data: Any, /) -> int:
        with suppress(OSError):
            super().write(data)
        return memoryview(data).nbytes


def on_signals(handler: Handler) -> dict[signal.Signals, Handler]:
    """Handle the signals that ask the process to end.

    A signal that is ignored stays so, as SIGHUP under `nohup`.

    Returns:
        The handlers from before, for `restore`.
    """
    before: dict[signal.Signals, Handler] = {}
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    return before


def restore(handlers: Mapping[signal.Signals, Handler]) -> None:
    """Undo `on_signals`."""
    for number, handler in handlers.items():
        signal.signal(number, handler)


def note(number: int) -> None:
    """Remember which signal has come."""
    global _last
    _last = 128 + number


def exit_code(code: int) -> int:
    """The exit code of a command: after an interrupt, that of the signal that has come."""
    return _last if code == INTERRUPTED else code


def interrupt(number: int, frame: FrameType | None = None) -> NoReturn:
    """A handler: what is under way is put in order; a second signal ends the process at once."""
    note(number)
    on_signals(end_at_once)
    raise KeyboardInterrupt


def end_at_once(number: int, frame: FrameType | None = None) -> NoReturn:
    """A handler: end the process without an exception, which could come at a place that cannot take one."""
    say_stopped()
    os._exit(128 + number)


def say_stopped() -> None:
    """Say it on standard error, not with print: the signal may have come while this thread prints to that stream."""
    with suppress(OSError):
        os.write(2, b"stopped\n")


def on_lost_exception(lost: Any) -> None:
    """For `sys.unraisablehook`: an interrupt in a callback, where Python cannot raise it, ends the process."""
    if lost.exc_type is not None and issubclass(lost.exc_type, KeyboardInterrupt):
        end_at_once(_last - 128)
    sys.__unraisablehook__(lost)
