"""Checks that a GGUF file is complete, and of a kind that MLX can run, before MLX reads it.

MLX's reader trusts every length in the file: a damaged file would end the process instead of raising. The reader of the
`gguf` package cannot stand in for this check. It makes Python objects for every value of a list, so a list that gives
its length as 2**40 fills the memory, and the default model takes 2.4 s instead of 0.03 s.
"""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path

from specviz.core.errors import UnsupportedModelError
from specviz.core.kinds import GGUF, kind_at
from specviz.core.reading import Wanted

_STRING, _ARRAY = 8, 9
_SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
#: Tensor type → (name, values per block, bytes per block), for the types that MLX reads without loss.
_READABLE = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    8: ("Q8_0", 32, 34),
}
_OTHER_TYPES = {6: "Q5_0", 7: "Q5_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 30: "BF16"}
_DIMENSIONS_MAX = 4
_HEADER_BYTES = 24
_WANTED = Wanted("a GGUF file", UnsupportedModelError, "Fetch it again, or give another one.")


def check_gguf(path: Path) -> None:
    """Check the whole structure of a file without reading its weights.

    Memory does not depend on what the file contains.

    Raises:
        UnsupportedModelError: not GGUF, cut short, an impossible length, another architecture, or weights of a type
            that MLX does not read; or the file cannot be read.
    """
    try:
        if (kind := kind_at(path)) != GGUF:
            raise _WANTED.refusal(path.name, kind)
        size = path.stat().st_size
        if size < _HEADER_BYTES:
            raise _damaged(path, "it is too short")
        with path.open("rb") as file, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data:
            _Walk(path, data, size).file()
    except struct.error as exc:
        raise _damaged(path, "it ends inside its header") from exc
    except (OSError, ValueError) as exc:  # ValueError: it has become shorter since `stat`
        raise _WANTED.unreadable(path, exc) from exc


def _damaged(path: Path, why: str) -> UnsupportedModelError:
    return UnsupportedModelError(f"{path.name} is not a complete GGUF file: {why}.", "Fetch it again.")


class _Walk:
    """One pass over a file. `at` is the position of the next byte."""

    def __init__(self, path: Path, data: mmap.mmap, size: int) -> None:
        self.path, self.data, self.size, self.at = path, data, size, 0
        self.alignment, self.architecture = 32, ""

    def file(self) -> None:
        self.at = len(b"GGUF")
        version = self.number("<I")
        if version not in (2, 3):
            raise _damaged(self.path, f"its version is {version}, and 2 and 3 are known")
        tensors, entries = self.number("<Q"), self.number("<Q")
        for _ in range(entries):
            self.entry()
        if self.architecture != "llama":
            raise UnsupportedModelError(
                f"{self.path.name} has the architecture {self.architecture!r}; "
                "GGUF files are read for the Llama family only.",
                "Use the same model as an MLX folder or a Hugging Face repository.",
            )
        ends = [self.tensor() for _ in range(tensors)]
        end = math.ceil(self.at / self.alignment) * self.alignment + max(ends, default=0)
        if ends and end > self.size:
            raise _damaged(self.path, f"{end - self.size:,} bytes are missing at its end")

    def number(self, form: str) -> int:
        value: int = struct.unpack_from(form, self.data, self.at)[0]
        self.skip(struct.calcsize(form))
        return value

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > self.size:
            raise _damaged(self.path, "a length in it points past its end")

    def text(self) -> bytes:
        length = self.number("<Q")
        begin = self.at
        self.skip(length)
        return self.data[begin : self.at]

    def entry(self) -> None:
        key, kind = self.text(), self.number("<I")
        if key == b"general.alignment" and kind == 4:
            self.alignment = self.number("<I") or 32
        elif key == b"general.architecture" and kind == _STRING:
            self.architecture = self.text().decode("utf-8", errors="replace")
        else:
            self.value(kind)

    def value(self, kind: int) -> None:
        if kind == _STRING:
            self.text()
        elif kind == _ARRAY:
            inner, count = self.number("<I"), self.number("<Q")
            if inner in _SCALAR_BYTES:
                self.skip(count * _SCALAR_BYTES[inner])
            elif inner == _STRING:
                for _ in range(count):
                    self.text()
            else:
                raise _damaged(self.path, f"it has a list of values of the unknown type {inner}")
        elif kind in _SCALAR_BYTES:
            self.skip(_SCALAR_BYTES[kind])
        else:
            raise _damaged(self.path, f"it has a value of the unknown type {kind}")

    def tensor(self) -> int:
        """End of one tensor, counted from the beginning of the weights."""
        name, dimensions = self.text().decode("utf-8", errors="replace"), self.number("<I")
        if not 1 <= dimensions <= _DIMENSIONS_MAX:
            raise _damaged(self.path, f"its tensor {name!r} has {dimensions} dimensions")
        shape = [self.number("<Q") for _ in range(dimensions)]
        kind, offset = self.number("<I"), self.number("<Q")
        if kind not in _READABLE:
            raise UnsupportedModelError(
                f"{self.path.name} stores {name} as {_OTHER_TYPES.get(kind, f'type {kind}')}; "
                f"only {', '.join(form for form, _, _ in _READABLE.values())} are read.",
                "Take a file in Q4_0, Q4_1, Q8_0 or F16, or the same model as an MLX repository.",
            )
        _, values, block = _READABLE[kind]
        if math.prod(shape) == 0 or shape[0] % values:
            raise _damaged(self.path, f"its tensor {name!r} has the impossible shape {shape}")
        return offset + math.prod(shape) // values * block
