"""Which GGUF files have been tried in a process of their own: a file is tried once, and again when it has changed."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from specviz.core.wait import Progress, Wait
from specviz.engines.llama.trial import try_out
from specviz.store.gguf.parts import parts_of
from specviz.store.workspace import cache_dir


def ensure_tried(path: Path, wait: Wait = Wait(), tokenizer: bool = True) -> None:
    """Try a file out, unless that was done.

    Args:
        path: of a split model its first part.
        wait: for the trial, which takes as long as loading the model.
        tokenizer: whether the file must have one.

    Raises:
        UnsupportedModelError: see `specviz.engines.llama.trial.try_out`.
    """
    mark = cache_dir() / "tried" / _identity(path)
    if mark.exists():
        return
    wait.on_progress(Progress(f"Trying {path.name}", 0, 1))
    try_out(path, tokenizer)
    wait.on_progress(Progress(f"Trying {path.name}", 1, 1))
    with suppress(OSError):  # a cache that cannot be written costs a trial each time
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def _identity(path: Path) -> str:
    """Of the files as they are now, and of the library."""
    parts = [(str(part.resolve()), part.stat().st_size, part.stat().st_mtime_ns) for part in parts_of(path)]
    return hashlib.sha256(repr((metadata.version("ik-llama-cpp-python"), parts)).encode()).hexdigest()[:32]
