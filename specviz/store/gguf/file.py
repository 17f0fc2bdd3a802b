"""The GGUF file of a source: found on this machine, or fetched."""

from __future__ import annotations

from pathlib import Path

from specviz.core.errors import UnsupportedModelError
from specviz.core.wait import Wait
from specviz.store.gguf import found, repository
from specviz.store.gguf.variants import parts_of
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
    return _first_part(Path(source.location))


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


def all_parts(first: Path) -> list[Path]:
    """Every file of a model, by its first one."""
    return [first.with_name(name) for name in parts_of(first.name)]


def _first_part(path: Path) -> Path:
    parts = all_parts(path)
    missing = [part.name for part in parts if not part.is_file()]
    if missing and len(parts) > 1:
        raise UnsupportedModelError(
            f"{path.name} is one of {len(parts)} parts of a model, and {missing[0]} is not beside it"
            + (f", nor are {len(missing) - 1} more." if len(missing) > 1 else "."),
            "Put all parts into the same folder.",
        )
    return parts[0]
