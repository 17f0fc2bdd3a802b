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
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{uuid.uuid4().hex[:8]}-{path.name}")
    try:
        if callable(data):
            data(beside)
        else:
            beside.write_bytes(data.encode("utf-8", errors="backslashreplace") if isinstance(data, str) else data)
        with beside.open("rb+") as file:
            # Without fsync a power failure can leave an empty file under the new name.
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


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
