"""GGUF files as their pieces, so that a test can put together what no writer would write."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from specviz.engines.gguf.forms import FORMS, LIST, NUMBERS, STRING
from specviz.engines.gguf.read import read_gguf

FORM_NUMBERS = {form.name: number for number, form in FORMS.items()}
_KINDS = {"text": STRING, "bool": 7} | {f"{form.kind}{form.itemsize * 8}": kind for kind, form in NUMBERS.items()}


def header(tensors: int, entries: int, rest: bytes, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries) + rest


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def entry(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: bytes, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


LLAMA = entry(b"general.architecture", STRING, text(b"llama"))


@dataclass
class Entry:
    """One entry of the metadata: `items` is the type of the values of a list, and None for a single value."""

    key: str
    kind: int
    value: Any
    items: int | None = None


@dataclass
class Tensor:
    """One tensor with its bytes; `offset` None puts it behind the one before."""

    name: str
    shape: tuple[int, ...]
    kind: int
    data: bytes
    offset: int | None = None


@dataclass(frozen=True)
class Place:
    """Where a number stands that a reader would trust."""

    what: str
    at: int
    size: int


@dataclass
class RawGguf:
    """A file that can be changed and written."""

    entries: list[Entry]
    tensors: list[Tensor]
    places: list[Place] = field(default_factory=list)

    def entry(self, key: str) -> Entry:
        return next(entry for entry in self.entries if entry.key == key)

    def tensor(self, name: str) -> Tensor:
        return next(tensor for tensor in self.tensors if tensor.name == name)

    def encoded(self) -> bytes:
        """The whole file. `places` then says where its lengths, counts, types and offsets are."""
        out = _Encoder()
        out.raw += b"GGUF"
        out.number("version", "I", 3)
        out.number("number of tensors", "Q", len(self.tensors))
        out.number("number of entries", "Q", len(self.entries))
        for entry in self.entries:
            out.text("a key", entry.key)
            if entry.items is None:
                out.number(f"type of {entry.key}", "I", entry.kind)
                out.value(entry.key, entry.kind, entry.value)
                continue
            out.number(f"type of {entry.key}", "I", LIST)
            out.number(f"type in the list {entry.key}", "I", entry.items)
            out.number(f"values in {entry.key}", "Q", len(entry.value))
            for value in entry.value:
                out.value(entry.key, entry.items, value)
        offset = 0
        for tensor in self.tensors:
            out.text("a tensor", tensor.name)
            out.number(f"dimensions of {tensor.name}", "I", len(tensor.shape))
            for length in tensor.shape:
                out.number(f"a length of {tensor.name}", "Q", length)
            out.number(f"form of {tensor.name}", "I", tensor.kind)
            out.number(f"offset of {tensor.name}", "Q", offset if tensor.offset is None else tensor.offset)
            offset += len(tensor.data) + -len(tensor.data) % 32
        self.places = out.places
        out.raw += bytes(-len(out.raw) % 32)
        for tensor in self.tensors:
            out.raw += tensor.data + bytes(-len(tensor.data) % 32)
        return bytes(out.raw)


class _Encoder:
    def __init__(self) -> None:
        self.raw, self.places = bytearray(), list[Place]()

    def number(self, what: str, form: str, value: int) -> None:
        self.places.append(Place(what, len(self.raw), struct.calcsize(form)))
        self.raw += struct.pack(f"<{form}", value % 2 ** (8 * struct.calcsize(form)))

    def text(self, what: str, value: str) -> None:
        raw = value.encode("utf-8", "surrogateescape")
        self.number(f"length of {what}", "Q", len(raw))
        self.raw += raw

    def value(self, key: str, kind: int, value: Any) -> None:
        if kind == STRING:
            self.text(f"a text in {key}", value)
        else:
            self.raw += np.array(value).astype(NUMBERS[kind]).tobytes()


def pieces_of(path: Path) -> RawGguf:
    """The pieces of a sound file."""
    file, whole = read_gguf(path), path.read_bytes()
    entries = []
    for key, value in file.metadata.items():
        kind = file.types[key]
        if kind.startswith("list of "):
            entries.append(Entry(key, LIST, value, _KINDS[kind.removeprefix("list of ")]))
        else:
            entries.append(Entry(key, _KINDS[kind], value))
    tensors = [
        Tensor(t.name, t.shape, FORM_NUMBERS[t.form.name], whole[t.begin : t.begin + t.nbytes])
        for t in file.tensors.values()
    ]
    return RawGguf(entries, tensors)
