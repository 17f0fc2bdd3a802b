"""Writes files that are either complete or absent, and turns file-system errors into `SpecvizError`s."""

from __future__ import annotations

import errno
import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from specviz.core.errors import SpecvizError


def write_whole(path: Path, data: bytes | str | Callable[[Path], None]) -> None:
    """Write a file in one step: the earlier file stays until all of the new one is on the disk.

    Args:
        path: its folder is created if it does not exist.
        data: the contents, text as UTF-8; or a function that writes to the path that it is given. That path has the
            same suffix as `path`, since some writers choose their format by it.

    Raises:
        OSError: the disk is full, or the folder cannot be written; `path` is as it was before.
    """

    def put(to: Path) -> None:
        if callable(data):
            data(to)
        else:
            to.write_bytes(data.encode("utf-8", errors="backslashreplace") if isinstance(data, str) else data)

    target = Path(os.path.realpath(path))  # a link stays one
    if target.exists() and not target.is_file() and not target.is_dir():
        put(target)  # a device or a pipe is not replaced
        return
    make_folder(target.parent)
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    beside = target.with_name(f".{uuid.uuid4().hex[:8]}{target.suffix}")
    try:
        put(beside)
        with beside.open("rb+") as file:
            # Without fsync a power failure can leave an empty file under the new name.
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException as exc:
        with suppress(OSError):
            beside.unlink()
        if isinstance(exc, OSError) and exc.filename == str(beside):
            exc.filename, exc.filename2 = str(path), None  # the hidden name says nothing to anybody
        raise


def make_folder(folder: Path) -> None:
    """Create a folder, and those above it, unless it exists.

    Raises:
        OSError: it cannot be made; NotADirectoryError where there is a file.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as exc:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from exc


@contextmanager
def disk_errors(where: Path, error: type[SpecvizError], remedy: str) -> Iterator[None]:
    """Turn a file-system error into a `SpecvizError` that names the path.

    Args:
        where: the file or folder, for errors that do not name one.
        error: the class to raise.
        remedy: what the user can do; also shown for a full disk.
    """
    try:
        yield
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise error(f"The disk that holds {where} is full.", remedy) from exc
        raise error(f"{exc.filename or where} cannot be written: {exc.strerror or exc}.", remedy) from exc


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's contents, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
