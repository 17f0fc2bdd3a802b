"""Files that are there whole or not at all, whenever the process is killed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specviz.core.errors import RunError

_TEMPORARY = ".partial"


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file beside `path`, and put it there in one step.

    Args:
        write: given a path with the same ending as `path`: some writers choose their format by it.

    Raises:
        OSError: the disk is full, or the folder cannot be written; `path` is as it was before.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{_TEMPORARY}-{path.name}")
    write(partial)
    with partial.open("rb+") as file:
        # Without it a power cut can leave the new name on an empty file.
        os.fsync(file.fileno())
    os.replace(partial, path)


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file, whole or not at all."""
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    write_whole(path, lambda partial: _write_text(partial, text))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn what the file system says into a `RunError` with a remedy."""
    try:
        yield
    except BrokenPipeError:  # no file of ours: the reader of the terminal's output has gone
        raise
    except OSError as exc:
        raise RunError(
            f"{exc.filename or folder} cannot be used: {exc.strerror or exc}.",
            "Free some space or look at its permissions; the same command then goes on from where it stopped.",
        ) from exc
