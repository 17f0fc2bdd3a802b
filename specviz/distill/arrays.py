"""Trees of MLX arrays as flat dictionaries and as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def flat(tree: Any) -> dict[str, Any]:
    """Dotted name → array, for the parameters of a module or the state of an optimizer."""
    from mlx.utils import tree_flatten

    return dict(tree_flatten(tree, destination={}))


def save(path: Path, arrays: dict[str, Any], metadata: dict[str, str]) -> None:
    """Write a safetensors file.

    Raises:
        OSError: it cannot be written, as on a full disk.
    """
    import mlx.core as mx

    try:
        mx.save_safetensors(str(path), arrays, metadata=metadata)
    except RuntimeError as exc:
        raise OSError(str(exc)) from exc


def load(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Arrays and metadata of a safetensors file.

    Raises:
        RuntimeError: it is damaged or missing.
    """
    import mlx.core as mx

    read: Any = mx.load  # its arguments decide which of three types it returns
    arrays, metadata = read(str(path), return_metadata=True)
    return arrays, metadata
