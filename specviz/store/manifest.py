"""What a converted model's folder has to hold, written down when it is made.

Sizes are compared whenever the model is looked up, which costs a few calls of stat; contents only when a load fails.
"""

from __future__ import annotations

import json
from pathlib import Path

from specviz.core.files import sha256_of

NAME = "specviz-manifest.json"


def write(folder: Path) -> None:
    """Note the size and the SHA-256 of every file in a finished folder.

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
    """Whether every file is there in its size. In a folder of an earlier version, without a manifest: its weights."""
    try:
        if not (folder / NAME).exists():
            return all(_is_whole(path) for path in folder.glob("*.safetensors"))
        return all((folder / name).stat().st_size == size for name, (size, _) in _read(folder).items())
    except (OSError, ValueError):
        return False


def contents_fit(folder: Path) -> bool:
    """Whether every file is byte for byte what was written; true where no manifest says so. Reads all of it."""
    try:
        if not (folder / NAME).exists():
            return True
        return all(sha256_of(folder / name) == digest for name, (_, digest) in _read(folder).items())
    except (OSError, ValueError):
        return False


def _read(folder: Path) -> dict[str, tuple[int, str]]:
    """Name → size and SHA-256; ValueError when the manifest itself is damaged."""
    try:
        data = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return {str(name): (int(file["bytes"]), str(file["sha256"])) for name, file in data["files"].items()}
    except (KeyError, TypeError, AttributeError) as exc:
        raise ValueError(f"{NAME} is damaged") from exc


def _is_whole(weights: Path) -> bool:
    """Whether a safetensors file is as long as its header says: a header's length, the header, all tensors."""
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
