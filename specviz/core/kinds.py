"""What a file is, by its first bytes: for the message that refuses it under another name."""

from __future__ import annotations

import codecs
import json
import re
import stat
from dataclasses import dataclass
from pathlib import Path

#: Bytes from which the kind of a file is known; the mark of a tar archive is at 257.
START_BYTES = 4096
_TAR_MARK = slice(257, 262)
#: The largest header that the safetensors library reads.
_SAFETENSORS_HEADER_MAX = 100_000_000


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is.

    Attributes:
        name: with its article, as in "it is a zip archive".
        remedy: what gives the file that was meant; empty where that depends on what was meant.
        text: whether it can be read as text. A pointer is text that nobody wants to read.
    """

    name: str
    remedy: str = ""
    text: bool = False


FOLDER = FileKind("a folder")
GGUF = FileKind("a GGUF file")
SAFETENSORS = FileKind("a safetensors file")
PARQUET = FileKind("a Parquet file")
GZIP = FileKind("a gzip file", "Unpack it with gunzip.")
TAR = FileKind("a tar archive", "Unpack it with tar -xf.")
LFS_POINTER = FileKind("a Git LFS pointer", "Fetch what it stands for: run `git lfs pull` in its repository.")
ANNEX_POINTER = FileKind("a git-annex pointer", "Fetch what it stands for: run `git annex get` in its repository.")
EMPTY = FileKind("an empty file", text=True)
HTML = FileKind("an HTML page", "Fetch the file itself, not a page that shows it.", text=True)
XML = FileKind("an XML document", text=True)
TRACE = FileKind("a trace", text=True)
BENCHMARK = FileKind("a saved benchmark", text=True)
PREDICTION = FileKind("a saved prediction", text=True)
JSON = FileKind("JSON", text=True)
TEXT = FileKind("plain text", text=True)
OTHER_TEXT = FileKind("text in another encoding than UTF-8", "Save it as UTF-8.", text=True)
BINARY = FileKind("binary data")
#: Lines of text, perhaps of JSON, that are nothing else.
LINES = (EMPTY, JSON, TEXT, OTHER_TEXT)
_UNPACK = "Unpack it."
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")

_MARKS: tuple[tuple[bytes, FileKind], ...] = (
    (b"GGUF", GGUF),
    (b"PAR1", PARQUET),
    (b"\x1f\x8b", GZIP),
    (b"PK\x03\x04", FileKind("a zip archive", _UNPACK)),
    (b"PK\x05\x06", FileKind("an empty zip archive")),
    (b"BZh", FileKind("a bzip2 file", "Unpack it with bunzip2.")),
    (b"\xfd7zXZ\x00", FileKind("an xz file", "Unpack it with unxz.")),
    (b"\x28\xb5\x2f\xfd", FileKind("a Zstandard file", "Unpack it with zstd -d.")),
    (b"7z\xbc\xaf\x27\x1c", FileKind("a 7z archive", _UNPACK)),
    (b"Rar!\x1a\x07", FileKind("a RAR archive", _UNPACK)),
    (b"SQLite format 3\x00", FileKind("an SQLite database")),
    (b"ARROW1", FileKind("an Arrow file")),
    (b"\x89HDF\r\n\x1a\n", FileKind("an HDF5 file")),
    (b"\x93NUMPY", FileKind("a numpy array")),
    (b"%PDF-", FileKind("a PDF document")),
    (b"\x89PNG\r\n\x1a\n", FileKind("a PNG image")),
    (b"\xff\xd8\xff", FileKind("a JPEG image")),
    (b"GIF8", FileKind("a GIF image")),
    (b"\x7fELF", FileKind("a program")),
    # Magic numbers of llama.cpp, little-endian, before GGUF took their place.
    *((mark, FileKind("a GGML file, the format before GGUF")) for mark in (b"lmgg", b"fmgg", b"tjgg", b"algg")),
)
_TEXT_MARKS: tuple[tuple[re.Pattern[str], FileKind], ...] = (
    (re.compile("version https://git-lfs.github.com/spec/"), LFS_POINTER),
    (re.compile("/annex/objects/"), ANNEX_POINTER),
    (re.compile("<!doctype html|<html[ >]", re.IGNORECASE), HTML),
    (re.compile(r"<\?xml "), XML),
    (re.compile(r'\{\s*"type"\s*:\s*"header"'), TRACE),
    (re.compile(r'\{\s*"schema"\s*:\s*"specviz\.bench/'), BENCHMARK),
    (re.compile(r'\{\s*"schema"\s*:\s*"specviz\.predict/'), PREDICTION),
    (re.compile(r"[{\[]"), JSON),
)


def kind_at(path: Path) -> FileKind:
    """What is at a path. Nothing but a regular file is opened: a pipe would wait for its writer.

    Raises:
        OSError: nothing is there, or it cannot be read.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        return _special(mode)
    with path.open("rb") as file:
        return kind_of(file.read(START_BYTES))


def _special(mode: int) -> FileKind:
    if stat.S_ISDIR(mode):
        return FOLDER
    if stat.S_ISFIFO(mode):
        return FileKind("a pipe")
    return FileKind("a socket" if stat.S_ISSOCK(mode) else "a device")


def kind_of(start: bytes) -> FileKind:
    """What a file is that begins with these bytes, at most `START_BYTES` of them."""
    if not start:
        return EMPTY
    for mark, kind in _MARKS:
        if start.startswith(mark):
            return kind
    if start[_TAR_MARK] == b"ustar":
        return TAR
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= _SAFETENSORS_HEADER_MAX:
        return SAFETENSORS
    return _kind_of_text(start)


def _kind_of_text(start: bytes) -> FileKind:
    encoding = encoding_of(start)
    try:
        # Not `bytes.decode`: the last character may be cut.
        text = codecs.getincrementaldecoder(encoding)().decode(start)
    except UnicodeDecodeError:
        return BINARY if b"\0" in start else OTHER_TEXT
    # Zero bytes alone suggested UTF-16 or UTF-32 where there is no mark, and binary data has these too.
    if encoding.endswith(("le", "be")) and _CONTROL.search(text):
        return BINARY
    text = text.lstrip()
    return next((kind for mark, kind in _TEXT_MARKS if mark.match(text)), TEXT)


def encoding_of(start: bytes) -> str:
    """The encoding of a text by its first bytes: UTF-16 or UTF-32, with a byte-order mark or without, else UTF-8.

    A decoder of this name leaves the mark out.
    """
    found: str = json.detect_encoding(start)
    return "utf-8-sig" if found == "utf-8" else found
