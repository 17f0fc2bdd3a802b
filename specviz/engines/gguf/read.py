"""The structure of a GGUF file: its metadata as Python's own values, and where each tensor is.

Readers in other languages trust every length in a file: a damaged one would end the process instead of raising. The
reader of the `gguf` package cannot stand in for this one. It makes an array for every value of a list, so a list that
gives its length as 2**40 fills the memory, and the default model takes 2.4 s instead of 0.1 s.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from specviz.core.errors import UnsupportedModelError
from specviz.core.kinds import GGUF, kind_at
from specviz.core.reading import Wanted
from specviz.engines.gguf.forms import FORMS, LIST, NUMBERS, STRING, TensorForm

_VERSIONS = (2, 3)
_HEADER_BYTES = 24
_DIMENSIONS_MAX = 4
_NAME_BYTES_MAX = 63
_KEYS_MAX = _TENSORS_MAX = 1 << 16
#: Of all lists together. The largest vocabularies have 1.3 million values in their lists.
_VALUES_MAX = 1 << 23
_METADATA_BYTES_MAX = 1 << 28
_YES_OR_NO = 7
_WANTED = Wanted("a GGUF file", UnsupportedModelError, "Fetch it again, or give another one.")
_COUNT = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor.

    Attributes:
        name: unique in its file.
        shape: in values, the dimension that is contiguous in memory first.
        form: how its values are stored.
        begin: position of its first byte in the file.
        nbytes: their number.
    """

    name: str
    shape: tuple[int, ...]
    form: TensorForm
    begin: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class GgufFile:
    """What a file says about itself.

    Attributes:
        metadata: Python's own values by key: numbers, yes or no, text, and lists of one of these.
        types: of these values by key, as in "u32", "f32", "bool", "text", "list of i32".
        tensors: by name, in the order of the file.
        file_bytes: size of the whole file.
    """

    metadata: dict[str, object]
    types: dict[str, str]
    tensors: dict[str, TensorInfo]
    file_bytes: int


def read_metadata(path: Path) -> dict[str, object]:
    """The metadata of a file: see `GgufFile`.

    Raises:
        UnsupportedModelError: see `read_gguf`.
    """
    return read_gguf(path).metadata


def read_gguf(path: Path) -> GgufFile:
    """Read and check the whole structure of a file, without its weights.

    Raises:
        UnsupportedModelError: not GGUF, cut short, an impossible length, or weights in an unknown form; or the file
            cannot be read.
    """
    try:
        if (kind := kind_at(path)) != GGUF:
            raise _WANTED.refusal(path.name, kind)
        size = path.stat().st_size
        if size < _HEADER_BYTES:
            raise damaged(path, "it is too short")
        with path.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data:
            return _Walk(path, data, size).file()
    except struct.error as exc:
        raise damaged(path, "it ends inside its header") from exc
    except (OSError, ValueError) as exc:  # ValueError: it has become shorter since `stat`
        raise _WANTED.unreadable(path, exc) from exc


def damaged(path: Path, why: str) -> UnsupportedModelError:
    """The error for a file of which something is missing or impossible."""
    return UnsupportedModelError(f"{path.name} is not a complete GGUF file: {why}.", "Fetch it again.")


class _Walk:
    """One pass over a file. `at` is the position of the next byte."""

    def __init__(self, path: Path, data: mmap.mmap, size: int) -> None:
        self.path, self.data, self.size, self.at = path, data, size, 0
        self.values = 0
        self.metadata: dict[str, object] = {}
        self.types: dict[str, str] = {}

    def file(self) -> GgufFile:
        self.at = len(b"GGUF")
        version = self.number("<I")
        if version not in _VERSIONS:
            raise self.damaged(f"its version is {version}, and 2 and 3 are known")
        tensors, entries = self.number("<Q"), self.number("<Q")
        for what, count, most in (("tensors", tensors, _TENSORS_MAX), ("metadata entries", entries, _KEYS_MAX)):
            if count > most:
                raise self.damaged(f"it gives {count:,} as the number of its {what}")
        for _ in range(entries):
            self.entry()
        alignment = self.alignment()
        infos = [self.tensor(alignment) for _ in range(tensors)]
        return GgufFile(self.metadata, self.types, self.placed(infos, alignment), self.size)

    def damaged(self, why: str) -> UnsupportedModelError:
        return damaged(self.path, why)

    def number(self, form: str) -> int:
        value: int = struct.unpack_from(form, self.data, self.at)[0]
        self.skip(struct.calcsize(form))
        return value

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > self.size:
            raise self.damaged("a length in it points past its end")
        if self.at > _METADATA_BYTES_MAX:
            raise self.damaged(f"its metadata have more than {_METADATA_BYTES_MAX:,} bytes")

    def text(self) -> bytes:
        length = self.number("<Q")
        begin = self.at
        self.skip(length)
        return self.data[begin : self.at]

    def name(self, what: str) -> str:
        raw = self.text()
        try:
            name = raw.decode()
        except UnicodeDecodeError as exc:
            raise self.damaged(f"the name {raw[:_NAME_BYTES_MAX]!r} of {what} is not UTF-8") from exc
        if "\0" in name:
            raise self.damaged(f"the name {name[:_NAME_BYTES_MAX]!r} of {what} has a zero byte in it")
        return name

    def entry(self) -> None:
        key = self.name("an entry")
        if key in self.metadata:
            raise self.damaged(f"it has the entry {key!r} twice")
        kind = self.number("<I")
        if kind == LIST:
            self.metadata[key], self.types[key] = self.listed(key)
        elif kind == STRING:
            # A text that is not UTF-8 is no reason to refuse a model: it may be a name or a licence.
            self.metadata[key], self.types[key] = self.text().decode(errors="replace"), "text"
        else:
            self.metadata[key], self.types[key] = self.numbers(key, kind, 1)[0], _name_of(kind)

    def listed(self, key: str) -> tuple[list[object], str]:
        kind, count = self.number("<I"), self.number("<Q")
        self.values += count
        # No value takes less than one byte, and no text less than eight.
        if count > self.size - self.at:
            raise self.damaged(f"the list {key!r} has {count:,} values and ends behind its end")
        if self.values > _VALUES_MAX:
            raise self.damaged(f"its lists have more than {_VALUES_MAX:,} values")
        if kind == LIST:
            raise self.damaged(f"{key!r} is a list of lists")
        values = self.texts(key, count) if kind == STRING else self.numbers(key, kind, count)
        return values, f"list of {_name_of(kind)}"

    def numbers(self, key: str, kind: int, count: int) -> list[object]:
        if kind not in NUMBERS:
            raise self.damaged(f"{key!r} has a value of the unknown type {kind}")
        form, begin = NUMBERS[kind], self.at
        self.skip(count * form.itemsize)
        values = np.frombuffer(self.data[begin : self.at], form)
        if kind == _YES_OR_NO and np.any(values.view(np.uint8) > 1):
            raise self.damaged(f"{key!r} is neither 0 nor 1, and its type is yes or no")
        return list(values.tolist())

    def texts(self, key: str, count: int) -> list[object]:
        """A list of texts. A vocabulary has up to 300,000 of them: this loop is the time that reading takes."""
        data, at, length_at, size = self.data, self.at, _COUNT.unpack_from, self.size
        values: list[object] = []
        try:
            for _ in range(count):
                begin = at + 8
                at = begin + length_at(data, at)[0]
                if at > size:
                    break
                values.append(data[begin:at].decode())
        except UnicodeDecodeError as exc:
            raise self.damaged(f"a text in {key!r} is not UTF-8") from exc
        self.skip(at - self.at)
        return values

    def alignment(self) -> int:
        key = "general.alignment"
        value = self.metadata.get(key, 32)
        if not isinstance(value, int) or value <= 0 or value & (value - 1) or self.types.get(key, "u32") != "u32":
            raise self.damaged(f"{key!r} is {value!r}, which is no power of two")
        return value

    def tensor(self, alignment: int) -> TensorInfo:
        """One tensor; `begin` is counted from the beginning of the weights."""
        name, dimensions = self.name("a tensor"), self.number("<I")
        if len(name.encode()) > _NAME_BYTES_MAX:
            raise self.damaged(f"the name of its tensor {name[:_NAME_BYTES_MAX]!r}… is too long")
        if dimensions > _DIMENSIONS_MAX:
            raise self.damaged(f"its tensor {name!r} has {dimensions} dimensions")
        shape = tuple(self.number("<Q") for _ in range(dimensions))
        kind, offset = self.number("<I"), self.number("<Q")
        if kind not in FORMS:
            raise UnsupportedModelError(
                f"{self.path.name} stores {name} as type {kind}, which is not known.",
                "Take a file in another form, such as Q4_K_M or Q8_0.",
            )
        form, values = FORMS[kind], math.prod(shape)
        columns, rows = (*shape, 1, 1)[:2]
        if not values or columns % form.values or rows % form.rows:
            raise self.damaged(f"its tensor {name!r} has the impossible shape {list(shape)} in {form.name}")
        if offset % alignment:
            raise self.damaged(f"its tensor {name!r} begins at {offset}, which is no multiple of {alignment}")
        nbytes = values // columns * (form.row_bytes + columns // form.values * form.block_bytes)
        return TensorInfo(name, shape, form, offset, nbytes)

    def placed(self, infos: Iterable[TensorInfo], alignment: int) -> dict[str, TensorInfo]:
        """The tensors by name, `begin` counted from the beginning of the file."""
        weights_at = math.ceil(self.at / alignment) * alignment
        tensors: dict[str, TensorInfo] = {}
        for info in infos:
            if info.name in tensors:
                raise self.damaged(f"it has the tensor {info.name!r} twice")
            tensors[info.name] = TensorInfo(info.name, info.shape, info.form, weights_at + info.begin, info.nbytes)
        end, before = weights_at, ""
        for info in sorted(tensors.values(), key=lambda info: info.begin):
            if info.begin < end:
                raise self.damaged(f"its tensors {before!r} and {info.name!r} overlap")
            end, before = info.begin + info.nbytes, info.name
        if end > self.size and tensors:
            raise self.damaged(f"{end - self.size:,} bytes are missing at its end")
        return tensors


def _name_of(kind: int) -> str:
    """Of a type of values: "u32", "f32", "bool", "text"."""
    if kind == STRING:
        return "text"
    return "bool" if kind == _YES_OR_NO else f"{NUMBERS[kind].kind}{NUMBERS[kind].itemsize * 8}"
