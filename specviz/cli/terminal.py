"""What the commands share: JSON, tables, progress, colours, Ctrl-C, and text without terminal control characters."""

from __future__ import annotations

import codecs
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from specviz.core import process
from specviz.core.wait import Progress

#: C0 and C1 controls but tab and newline: model text must not move the cursor or set a window title.
_CONTROLS = {c: f"\\x{c:02x}" for c in (*range(0x20), *range(0x7F, 0xA0)) if chr(c) not in "\t\n"}
# Marks that change the writing direction.
_CONTROLS |= {c: f"\\u{c:04x}" for c in (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))}

_JSON_ESCAPES = {c: f"\\u{c:04x}" for c in _CONTROLS if c >= 0x20}

COLOURS = {"accepted": "32", "resampled": "33", "bonus": "36", "rejected": "9;31", "ignored": "2"}


def safe(text: str) -> str:
    """Text that is safe to print: control characters are escaped."""
    return text.translate(_CONTROLS)


def is_screen(out: TextIO) -> bool:
    """Whether colours and rewritten lines can be shown: on a terminal, but not on one that knows no control codes."""
    return out.isatty() and os.environ.get("TERM") != "dumb"


def painted(text: str, status: str, out: TextIO) -> str:
    """The text in the colour of its status, if the output is a screen."""
    code = COLOURS.get(status)
    return f"\x1b[{code}m{text}\x1b[0m" if code and is_screen(out) else text


class Utf8Stream:
    """Joins tokens that are parts of characters: returns text only when a character is complete."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, data: bytes) -> str:
        """The text that these bytes complete."""
        return self._decoder.decode(data)

    def finish(self) -> str:
        """The rest: a replacement character where the last one is incomplete."""
        return self._decoder.decode(b"", final=True)


def write_json(data: dict[str, Any]) -> None:
    """Print one object on standard output, a line per field."""
    rows = (f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False, allow_nan=False)}" for k, v in data.items())
    # In JSON such characters are in strings only, where they may be escaped.
    print(("{\n" + ",\n".join(rows) + "\n}").translate(_JSON_ESCAPES))


def print_error(message: str, remedy: str) -> None:
    """An error and its remedy on standard error."""
    print(f"error: {safe(message)}", file=sys.stderr)
    if remedy:
        print(f"       {safe(remedy)}", file=sys.stderr)


def print_warning(message: str) -> None:
    """A warning on standard error; none where the message is empty."""
    if message:
        print(f"warning: {safe(message)}", file=sys.stderr)


class ProgressLine:
    """Progress on standard error: one rewritten line on a screen, otherwise one line per stage."""

    def __init__(self, err: TextIO | None = None) -> None:
        self._err = err or sys.stderr
        self._what, self._beside_text = "", False

    def __call__(self, progress: Progress) -> None:
        """Show the progress of a wait; an empty one ends it."""
        if not progress.what:
            self.clear()
        elif is_screen(self._err) and not self._beside_text:
            self._err.write(f"\r\x1b[K{safe(_words(progress))}")
            self._err.flush()
        elif progress.what != self._what:
            # The cursor may be in the middle of a line of text.
            print("\n" * self._beside_text + safe(progress.what), file=self._err)
        self._what = progress.what

    def beside_text(self) -> None:
        """Text is printed from now on: no line is rewritten any more, and each new wait has a line of its own."""
        self.clear()
        self._beside_text = True

    def clear(self) -> None:
        """Remove the line before something else is printed."""
        if self._what and is_screen(self._err) and not self._beside_text:
            self._err.write("\r\x1b[K")
            self._err.flush()
        self._what = ""


def _words(progress: Progress) -> str:
    if progress.unit == "bytes":
        done = f"{progress.done / 1e6:,.1f}"
        return (
            f"{progress.what}  {done} of {progress.total / 1e6:,.1f} MB"
            if progress.total
            else f"{progress.what}  {done} MB"
        )
    if progress.total:
        return f"{progress.what}  {progress.done} of {progress.total} {progress.unit}"
    return progress.what


@contextmanager
def stop_on_interrupt(words: str) -> Iterator[threading.Event]:
    """The first Ctrl-C prints `words` and sets the event, so that the work ends in order; the second ends at once.

    So does `kill`, and the end of the terminal.
    """
    stopping = threading.Event()

    def stop(number: int, frame: object) -> None:
        if stopping.is_set():
            process.interrupt(number)
        stopping.set()
        process.note(number)
        # Not with print: the signal may have come while this thread prints to the same stream.
        with suppress(OSError, AttributeError, ValueError):
            os.write(sys.stderr.fileno(), f"\n{words}\n".encode())

    before = process.on_signals(stop)
    try:
        yield stopping
    finally:
        process.restore(before)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """A table: the first column left-aligned, the others right-aligned."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
