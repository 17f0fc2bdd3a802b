"""The files of a converted model with their sizes and SHA-256, recorded after the conversion.

Sizes are compared whenever the model is looked up, which takes a few calls of `stat`. Contents are compared only after
a load that failed.
"""

from __future__ import annotations

import json
from pathlib import Path

from specviz.core.files import sha256_of

NAME = "specviz-manifest.json"


def write(folder: Path) -> None:
    """Record the size and the SHA-256 of every file in a finished folder.

    Raises:
        OSError: the folder cannot be read or written.
    """
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for path in sorted(folder.iterdir())
        if path.name != NAME
    }
    (folder / NAME).write_text(json.dumps({"files": files}, indent=2), encoding="utf-8")


def sizes_fit(folder: Path) -> bool:
    """Whether every file exists and has its size. Without a manifest, as of an earlier version: only the weights."""
    try:
        if not (folder / NAME).exists():
            return all(_is_whole(path) for path in folder.glob("*.safetensors"))
        return all((folder / name).stat().st_size == size for name, (size, _) in _read(folder).items())
    except (OSError, ValueError):
        return False


def contents_fit(folder: Path) -> bool:
    """Whether the contents of all files are unchanged; true without a manifest. Reads all files."""
    try:
        if not (folder / NAME).exists():
            return True
        return all(sha256_of(folder / name) == digest for name, (_, digest) in _read(folder).items())
    except (OSError, ValueError):
        return False


def _read(folder: Path) -> dict[str, tuple[int, str]]:
    """Size and SHA-256 by name. Raises ValueError where the manifest is damaged."""
    try:
        data = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return {str(name): (int(file["bytes"]), str(file["sha256"])) for name, file in data["files"].items()}
    except (KeyError, TypeError, AttributeError) as exc:
        raise ValueError(f"{NAME} is damaged") from exc


def _is_whole(weights: Path) -> bool:
    """Whether a safetensors file has the size that follows from its header."""
    with weights.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        size = weights.stat().st_size
        if length > size:
            return False
        try:
            header: dict[str, dict[str, list[int]]] = json.loads(file.read(length))
            ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
            return size == 8 + length + max(ends, default=0)
        except (KeyError, TypeError, AttributeError, IndexError):
            return False
