"""One writer of a file at a time, among all processes and the visitors of one page."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from specviz.core.errors import RunError
from specviz.core.files import make_folder

_SHOWN_BYTES = 200


@contextmanager
def claimed(path: Path, by: str) -> Iterator[None]:
    """Keep others from writing a file.

    The system holds the lock, so that a process that was killed blocks nobody. It is on a hidden file beside `path`,
    which says who holds it and is removed at the end.

    Args:
        path: the file; its folder is created. A device or a pipe can have several writers, and is not claimed.
        by: who writes it, as shown to others.

    Raises:
        RunError: somebody else writes it.
        OSError: the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    real = Path(os.path.realpath(path))
    if real.exists() and not (real.is_file() and os.access(real.parent, os.W_OK)):
        yield
        return
    make_folder(real.parent)
    beside = real.with_name(f".specviz-{hashlib.sha256(os.fsencode(real.name)).hexdigest()[:12]}.lock")
    lock = FileLock(beside, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout as exc:
        raise RunError(
            f"{path} is being written by {_holder(beside) or 'another specviz'}.",
            "Wait until that has ended, stop it, or choose another file.",
        ) from exc
    except OSError as exc:
        exc.filename = str(path)  # the hidden name says nothing to anybody
        raise
    try:
        beside.write_text(f"{by}, process {os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}", encoding="utf-8")
        yield
    finally:
        # Before the release: another process that has it open looks whether it is still there.
        with suppress(OSError):
            beside.unlink()
        lock.release()


def _holder(beside: Path) -> str:
    try:
        with beside.open("rb") as file:
            return file.read(_SHOWN_BYTES).decode("utf-8", errors="replace").strip()
    except OSError:
        return ""
