"""The lines of a file as text: any encoding, gzip or not, never more than one line of it in memory."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, cast

from specviz.core.errors import SettingsError

#: Characters that a line may have; what is longer is no prompt that a model could read.
MAX_LINE = 1_000_000

_GZIP = b"\x1f\x8b"
#: Longest first: the mark of UTF-32 begins as that of UTF-16 does.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: Stands for bytes that are not in the encoding. Decoders never give half of a surrogate pair, so no text has it.
_UNREADABLE = "\udcff"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file.

    Attributes:
        number: from 1.
        text: with its line end; of a line that is too long its first characters.
        why: why it cannot be used; empty where it can.
        cut: whether it is too long.
    """

    number: int
    text: str
    why: str = ""
    cut: bool = False


@contextmanager
def lines_of(stream: BinaryIO, encoding: str | None, *, newline: str) -> Iterator[Iterator[Line]]:
    r"""The lines of a seekable stream, from its start; it stays open.

    Args:
        encoding: None is UTF-8, or what a byte order mark at the start says.
        newline: "\n" to end lines there alone, "" also at "\r" and "\r\n".

    Raises:
        SettingsError: no such encoding; or, while lines are read: a damaged gzip, a disk that fails.
    """
    plain = _unpacked(stream)
    chosen = _encoding(plain, encoding)
    try:
        text = io.TextIOWrapper(plain, chosen, errors=_MARK_UNREADABLE, newline=newline)
    except (LookupError, ValueError) as exc:
        raise SettingsError(
            f"There is no text encoding called {encoding!r}.", "Common ones are utf-8, utf-16, cp1252 and gbk."
        ) from exc
    try:
        with _read_errors(chosen):
            yield _lines(text, chosen)
    finally:
        text.detach()  # else it would close the stream, which is not ours


def _unpacked(stream: BinaryIO) -> BinaryIO:
    packed = _start(stream, len(_GZIP)) == _GZIP
    return cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb")) if packed else stream


def _encoding(stream: BinaryIO, wanted: str | None) -> str:
    if wanted is not None:
        # A mark is no part of the text, whether or not the name of the encoding says that there is one.
        return "utf-8-sig" if wanted.lower().replace("_", "-") in ("utf-8", "utf8") else wanted
    with _read_errors("utf-8"):
        start = _start(stream, 4)
    return next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8-sig")


def _start(stream: BinaryIO, size: int) -> bytes:
    stream.seek(0)
    start = stream.read(size)
    stream.seek(0)
    return start


def _lines(text: io.TextIOWrapper, encoding: str) -> Iterator[Line]:
    number = 0
    while line := text.readline(MAX_LINE + 2):
        number += 1
        if number == 1:
            line = line.removeprefix("\ufeff")  # the names utf-16-le and utf-16-be leave it in
        if len(line.rstrip("\r\n")) > MAX_LINE:
            _skip_rest(text, line)
            yield Line(number, line[:80], f"the line is longer than {MAX_LINE:,} characters", cut=True)
        elif _UNREADABLE in line:
            yield Line(number, line, _not_in(encoding))
        else:
            yield Line(number, line)


def _skip_rest(text: io.TextIOWrapper, line: str) -> None:
    while line and not line.endswith(("\n", "\r")):
        line = text.readline(MAX_LINE)


def _not_in(encoding: str) -> str:
    name = encoding.removesuffix("-sig").upper()
    return f"it has bytes that are not {name}; if the file is in another encoding, name it with --encoding"


@contextmanager
def _read_errors(encoding: str) -> Iterator[None]:
    """What reading may raise, as errors with a remedy."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as exc:
        raise SettingsError(
            f"The gzip file is cut or damaged ({exc}).", "Fetch it again, or unpack what is left of it with gunzip."
        ) from exc
    except UnicodeError as exc:
        raise SettingsError(
            f"The file cannot be read as {encoding}: {exc}.",
            "Name another one with --encoding; without a byte order mark, UTF-16 is utf-16-le or utf-16-be.",
        ) from exc
    except OSError as exc:
        raise SettingsError(f"The file cannot be read: {exc.strerror or exc}.", "Copy it to another disk.") from exc


def _mark_unreadable(error: UnicodeError) -> tuple[str, int]:
    """Take the place of bytes that cannot be decoded, so that the lines around them still can."""
    if isinstance(error, UnicodeDecodeError):
        return _UNREADABLE, error.end
    raise error


_MARK_UNREADABLE = "specviz-mark-unreadable"
codecs.register_error(_MARK_UNREADABLE, _mark_unreadable)
