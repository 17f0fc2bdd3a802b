"""What a GGUF file is, by its first entries: enough for a list, and quick. `engines/gguf` reads whole files."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_STRING, _LIST = 8, 9
#: Type of a value → its form for `struct`.
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
#: The entries that come before the first long list, which is the vocabulary, are within this.
_READ_BYTES = 1 << 18
_ENTRIES_MAX = 1 << 10
_TEXT_MAX = 200
_TOKENS = "tokenizer.ggml.tokens"


@dataclass(frozen=True, slots=True)
class GgufSummary:
    """What the first entries of a file say.

    Attributes:
        architecture: of the model, such as "llama".
        quantization: such as "Q4_K_M"; empty where it is not said.
        size: such as "1B"; empty where it is not said.
        vocabulary: kind, pre-tokenizer and number of the tokens; None where they are not among the first entries.
        decodes: whether it is a model that continues text, and no adapter, projector or embedding model.
    """

    architecture: str
    quantization: str
    size: str
    vocabulary: tuple[str, str, int] | None
    decodes: bool


def summary_of(path: Path) -> GgufSummary | None:
    """The summary of a file; None where it is no GGUF file, or cannot be read."""
    try:
        status = path.stat()
        return _summary(path, status.st_size, status.st_mtime_ns)
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=512)
def _summary(path: Path, size: int, mtime_ns: int) -> GgufSummary | None:
    with path.open("rb") as file:
        entries = _entries(file.read(_READ_BYTES))
    if entries is None:
        return None
    architecture = _text(entries.get("general.architecture"))
    kind = _text(entries.get("general.type")) or "model"
    pooling = entries.get(f"{architecture}.pooling_type", 0)
    tokens = entries.get(_TOKENS)
    return GgufSummary(
        architecture,
        _quantization(entries.get("general.file_type")),
        _text(entries.get("general.size_label")),
        (
            (_text(entries.get("tokenizer.ggml.model")), _text(entries.get("tokenizer.ggml.pre")), tokens)
            if isinstance(tokens, int)
            else None
        ),
        bool(architecture)
        and kind == "model"
        and not pooling
        and "bert" not in architecture
        and architecture not in ("clip", "t5encoder", "gemma-embedding"),
    )


def _entries(data: bytes) -> dict[str, object] | None:
    """The entries at the beginning of a file, up to its first long list, of which the length is given."""
    if data[:4] != b"GGUF" or len(data) < 24:
        return None
    count, at = min(int.from_bytes(data[16:24], "little"), _ENTRIES_MAX), 24
    found: dict[str, object] = {}
    try:
        for _ in range(count):
            key, at = _string(data, at)
            (kind,) = struct.unpack_from("<I", data, at)
            at += 4
            if kind == _STRING:
                found[key], at = _string(data, at)
            elif kind == _LIST:
                inner, length = struct.unpack_from("<IQ", data, at)
                found[key], at = length, at + 12
                if inner not in _SCALARS:
                    return found
                at += length * struct.calcsize(_SCALARS[inner])
            else:
                (found[key],) = struct.unpack_from(_SCALARS[kind], data, at)
                at += struct.calcsize(_SCALARS[kind])
    except (struct.error, KeyError):  # the end of what was read, or a damaged file
        pass
    return found


def _string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<Q", data, at)
    end = at + 8 + length
    if end > len(data):
        raise struct.error
    return data[at + 8 : end].decode(errors="replace"), end


def _text(value: object) -> str:
    """A short text that can be shown."""
    return value if isinstance(value, str) and value.isprintable() and len(value) <= _TEXT_MAX else ""


def _quantization(file_type: object) -> str:
    from gguf.constants import LlamaFileType

    names = {int(form): form.name.removeprefix("MOSTLY_").removeprefix("ALL_") for form in LlamaFileType}
    return names.get(file_type, "") if isinstance(file_type, int) else ""
