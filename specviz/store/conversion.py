"""GGUF files converted to folders that mlx-lm loads, and kept in the cache."""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path

from specviz.core.errors import DownloadError, UnsupportedModelError
from specviz.core.wait import Progress, Wait
from specviz.store import manifest
from specviz.store.gguf import default
from specviz.store.gguf.file import gguf_file
from specviz.store.sources import ModelSource, check_complete, resolve, unreadable
from specviz.store.workspace import (
    check_cancelled,
    disk_errors,
    making,
    model_dir,
    move_into_place,
    require_space,
    take_away,
)

# Part of the keys of converted models: to be raised when a conversion writes something else than before.
_VERSION = 1
_ROOM_BYTES = 16_000_000


def converted(source: ModelSource, wait: Wait) -> Path:
    """The folder that is made from a GGUF file, now or earlier.

    Args:
        source: of kind "wheel" or "gguf".
        wait: for download and conversion.

    Raises:
        DownloadError: it could not be fetched or checked.
        UnsupportedModelError: a GGUF file that cannot be used.
        OSError: the cache cannot be written.
    """
    from specviz.engines.mlx.convert import convert

    key = _key(source)
    title = source.known.title if source.known else Path(source.name).name
    with making(key, title, wait) as temporary:
        if made := existing(source):  # by another process, while this one waited
            return made
        gguf = fetch(source, wait)
        check_cancelled(wait)
        wait.on_progress(Progress(f"Converting {title}", 0, 1))
        finished = temporary / "converted"
        finished.mkdir()
        convert(gguf, finished)
        manifest.write(finished)
        moved = move_into_place(finished, key)
        wait.on_progress(Progress(f"Converting {title}", 1, 1))
        return moved


def fetch(source: ModelSource, wait: Wait) -> Path:
    """The GGUF file of a model, as it comes.

    Args:
        source: of kind "wheel" or "gguf".
        wait: its progress is in bytes.

    Raises:
        DownloadError: it could not be fetched or checked.
        OSError: the disk has too little space for the file and its conversion.
    """
    if source.kind == "wheel":
        return default.as_it_comes(wait)
    gguf = gguf_file(source, wait)
    require_space(gguf.stat().st_size + _ROOM_BYTES)
    return gguf


def existing(source: ModelSource) -> Path | None:
    """The converted model, if it is in the cache and no file of it is missing or cut; None otherwise.

    Raises:
        UnsupportedModelError: the GGUF file cannot be read.
    """
    folder = model_dir(_key(source))
    try:
        check_complete(folder)
    except UnsupportedModelError:
        return None
    return folder if manifest.sizes_fit(folder) else None


def refuse_damaged(name: str) -> None:
    """After a load that failed: remove a model that specviz converted and whose files have changed since.

    Raises:
        DownloadError: it had changed.
        UnknownModelError: see `resolve`.
    """
    source = resolve(name)
    if source.kind not in ("wheel", "gguf"):
        return
    key = _key(source)
    if manifest.contents_fit(model_dir(key)):
        return
    with disk_errors(), making(key, name) as temporary:
        if not manifest.contents_fit(model_dir(key)):  # otherwise another process has replaced it
            take_away(key, temporary)
    raise DownloadError(
        f"The converted model {source.name} was damaged on the disk and has been removed: the SHA-256 of a file was "
        "not the one that was recorded when the file was made.",
        f"Make it again: python -m specviz models pull {shlex.quote(source.name)}",
    )


def _key(source: ModelSource) -> str:
    """The name of a converted model's folder. Each file, each change of it and each version has its own."""
    if source.kind == "wheel":
        return f"{source.name}-v{_VERSION}"
    try:
        path = Path(source.location).resolve()
        status = path.stat()
    except OSError as exc:
        raise unreadable(Path(source.location), exc) from exc
    identity = f"{path}\0{status.st_size}\0{status.st_mtime_ns}".encode(errors="surrogateescape")
    seen = hashlib.sha256(identity).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', path.stem)[:80]}-{seen}-v{_VERSION}"
