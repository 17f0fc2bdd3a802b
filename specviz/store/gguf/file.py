"""The GGUF file of a source, fetched where it is not on this machine."""

from __future__ import annotations

from pathlib import Path

from specviz.core.wait import Wait
from specviz.store.sources import ModelSource


def gguf_here(source: ModelSource) -> Path | None:
    """The file that `gguf_file` would return, if all parts of it are on this machine; None otherwise.

    Args:
        source: one that `is_gguf`, of another kind than "wheel".
    """
    path = Path(source.location)
    return path if path.is_file() else None


def gguf_file(source: ModelSource, wait: Wait = Wait()) -> Path:
    """The file to load; for a model in several files the first of them. What is on this machine needs no network.

    Args:
        source: one that `is_gguf`, of another kind than "wheel".
        wait: for a download.
    """
    return Path(source.location)
