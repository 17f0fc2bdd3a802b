"""Values out of the metadata of a GGUF file, each of the kind that is wanted, or an error that names its key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from specviz.core.errors import UnsupportedModelError

#: As `mx.load` returns it: text as `str`, texts as `list`, numbers as arrays, single ones without dimensions.
Metadata = Mapping[str, Any]


def whole(metadata: Metadata, key: str, default: int | None = None, least: int = 1) -> int:
    """A whole number of `least` or more; without a default it has to be there."""
    value = _scalar(metadata, key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _odd(metadata, key, f"one whole number, {least} or more")
    return value


def optional_id(metadata: Metadata, key: str) -> int | None:
    """A token id, if the file gives one."""
    return whole(metadata, key, least=0) if key in metadata else None


def real(metadata: Metadata, key: str, default: float | None = None) -> float:
    """A finite number above 0; without a default it has to be there."""
    value = _scalar(metadata, key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise _odd(metadata, key, "one number above 0")
    return value


def flag(metadata: Metadata, key: str, default: bool) -> bool:
    """True or false."""
    value = _scalar(metadata, key, default)
    if not isinstance(value, bool):
        raise _odd(metadata, key, "true or false")
    return value


def text(metadata: Metadata, key: str, default: str = "") -> str:
    """A text."""
    value = metadata.get(key, default)
    if not isinstance(value, str):
        raise _odd(metadata, key, "text")
    return value


def texts(metadata: Metadata, key: str) -> list[str]:
    """A list of texts; empty where the file has none."""
    value = metadata.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _odd(metadata, key, "a list of texts")
    return value


def whole_list(metadata: Metadata, key: str) -> list[int]:
    """A list of whole numbers; empty where the file has none."""
    value: Any = metadata.get(key, [])
    items = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(items, list) or not all(isinstance(item, int) for item in items):
        raise _odd(metadata, key, "a list of whole numbers")
    return items


def _scalar(metadata: Metadata, key: str, default: Any) -> Any:
    value = metadata.get(key)
    if value is None:
        if default is None:
            raise UnsupportedModelError(f"The GGUF file does not say {key}.", "Use a complete file.")
        return default
    return value.item() if getattr(value, "size", 0) == 1 else value


def _odd(metadata: Metadata, key: str, wanted: str) -> UnsupportedModelError:
    value: Any = metadata.get(key)
    shown = repr(value.tolist() if hasattr(value, "tolist") else value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
    return UnsupportedModelError(
        f"The GGUF file says {key} is {shown}, where {wanted} is needed.",
        "Use another file, or the same model as an MLX folder or a Hugging Face repository.",
    )
