"""The GGUF file of a source: found on this machine, or fetched."""

from __future__ import annotations

from pathlib import Path

from specviz.core.wait import Wait
from specviz.store.gguf import found, repository
from specviz.store.gguf.parts import first_part
from specviz.store.sources import ModelSource


def gguf_here(source: ModelSource) -> Path | None:
    """The file that `gguf_file` would return, if it is on this machine; None otherwise.

    Args:
        source: one that `is_gguf`, of another kind than "wheel".

    Raises:
        UnsupportedModelError: a file of the user's that is one part of a model, where other parts are missing.
    """
    if source.kind == "hub-gguf":
        repo, _, tag = source.location.partition(":")
        return found.in_repository(repo, tag)
    return first_part(Path(source.location))


def gguf_file(source: ModelSource, wait: Wait = Wait()) -> Path:
    """The file to load; of a split model the first part. What is on this machine needs no network.

    Args:
        source: one that `is_gguf`, of another kind than "wheel".
        wait: for a download, in bytes.

    Raises:
        UnknownModelError: no such repository, or no such model in it.
        DownloadError: it could not be fetched.
        UnsupportedModelError: see `gguf_here`.
    """
    if path := gguf_here(source):
        return path
    repo, _, tag = source.location.partition(":")
    return repository.fetch(repo, tag, wait)
