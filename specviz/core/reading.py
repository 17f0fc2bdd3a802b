"""The one reader of texts from outside: byte-order marks, UTF-16, line ends, other kinds of file, sizes, JSON."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from specviz.core.errors import SpecvizError
from specviz.core.kinds import START_BYTES, FileKind, encoding_of, kind_at, kind_of
from specviz.core.settings import is_text

_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a file should be, for the errors of its reader.

    Attributes:
        name: with its article, as in "it is an HTML page, not a trace".
        error: the class to raise.
        remedy: what the user can give instead.
        kinds: those that it may be; empty for any text.
        largest_bytes: of a file that is read.
    """

    name: str
    error: type[SpecvizError]
    remedy: str
    kinds: tuple[FileKind, ...] = ()
    largest_bytes: int = 16 * _MB

    def refusal(self, file: str | Path, kind: FileKind) -> SpecvizError:
        """The error for a file that is something else."""
        return self.error(f"{file} is {kind.name}, not {self.name}.", kind.remedy or self.remedy)

    def unreadable(self, file: str | Path, exc: OSError | ValueError) -> SpecvizError:
        """The error for a file that cannot be read."""
        return self.error(f"{file} cannot be read: {getattr(exc, 'strerror', None) or exc}.", self.remedy)


def read_text(path: Path, wanted: Wanted) -> str:
    """The text of a file; see `text_of`. A pipe, as of a shell's `<(…)`, is read too.

    Raises:
        SpecvizError: of the class `wanted.error`: the file cannot be read, is too large, or is no text.
    """
    return text_of(read_bytes(path, wanted), path, wanted)


def read_bytes(path: Path, wanted: Wanted) -> bytes:
    """The contents of a file that holds text.

    Raises:
        SpecvizError: as `read_text`.
    """
    try:
        if path.is_dir() or path.is_socket():
            raise wanted.refusal(path, kind_at(path))
        file = path.open("rb")
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        raise wanted.unreadable(path, exc) from exc
    with file:
        return read_stream(file, path, wanted)


def read_stream(stream: BinaryIO, name: str | Path, wanted: Wanted) -> bytes:
    """The rest of a stream that holds text, as `read_bytes`."""
    try:
        data = stream.read(START_BYTES)
        refuse_other(data, name, wanted)
        data += stream.read(wanted.largest_bytes + 1 - len(data))
    except OSError as exc:
        raise wanted.unreadable(name, exc) from exc
    if len(data) > wanted.largest_bytes:
        raise wanted.error(
            f"{name} is larger than {wanted.largest_bytes / _MB:,g} MB, the most that is read of {wanted.name}.",
            wanted.remedy,
        )
    return data


def refuse_other(data: bytes, name: str | Path, wanted: Wanted) -> FileKind:
    """What these bytes are.

    Raises:
        SpecvizError: of the class `wanted.error`: they are something else than `wanted`.
    """
    kind = kind_of(data[:START_BYTES])
    if not kind.text or (wanted.kinds and kind not in wanted.kinds):
        raise wanted.refusal(name, kind)
    return kind


def text_of(data: bytes, name: str | Path, wanted: Wanted) -> str:
    r"""The text of a file's bytes: UTF-8, UTF-16 or UTF-32, without a byte-order mark; each line ends in "\n".

    Raises:
        SpecvizError: of the class `wanted.error`: they are no text.
    """
    refuse_other(data, name, wanted)
    encoding = encoding_of(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        shown = encoding.removesuffix("-sig").upper()
        raise wanted.error(
            f"{name} cannot be read as {shown}: {exc.reason}, 0x{data[exc.start]:02x} in line {line}.",
            "Save it as UTF-8.",
        ) from exc
    return io.StringIO(without_mark(text), newline=None).read()


def without_mark(text: str) -> str:
    """A text without a byte-order mark at its start, such as a shell's `"$(cat FILE)"`, or the second of two."""
    return text.lstrip("\ufeff")


def json_of(text: str | bytes) -> Any:
    """What a JSON text holds. Stricter than `json.loads`: no NaN, no key twice, no half of a surrogate pair.

    Raises:
        ValueError: it is not JSON; the message says why.
    """
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except json.JSONDecodeError as exc:
        at = f"character {exc.colno}" + (f" of line {exc.lineno}" if exc.lineno > 1 else "")
        raise ValueError(f"it is not JSON: {exc.msg[:1].lower()}{exc.msg[1:]} at {at}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    escapes = ("\\ud", "\\uD") if isinstance(text, str) else (b"\\ud", b"\\uD")
    if any(escape in text for escape in escapes) and not is_text(json.dumps(found, ensure_ascii=False)):  # type: ignore[operator]
        raise ValueError("it has half of a surrogate pair, which is not a character")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it has the key {twice[:80]!r} twice")
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number of JSON")
