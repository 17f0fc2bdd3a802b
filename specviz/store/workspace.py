"""The cache folder on disk, and the rule by which anything gets into it: whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from specviz.core import files
from specviz.core.errors import DownloadError
from specviz.core.ports import OnProgress, Progress

CACHE_VARIABLE = "SPECVIZ_CACHE"
_LOCK_POLL_S = 0.2

Cancelled = Callable[[], bool]


def cache_dir() -> Path:
    """Where models live: `SPECVIZ_CACHE`, or the user's cache folder."""
    import platformdirs

    given = os.environ.get(CACHE_VARIABLE, "").strip()
    return Path(os.path.expanduser(given)) if given else Path(platformdirs.user_cache_dir("specviz"))


def model_dir(key: str) -> Path:
    """The folder of a converted model. It exists only once it is complete."""
    return cache_dir() / "models" / key


def check_cancelled(cancelled: Cancelled) -> None:
    """Raise if the user has lost interest.

    Raises:
        DownloadError: cancelled.
    """
    if cancelled():
        raise DownloadError("The download was cancelled.", "Nothing half-made is left; start it again any time.")


def disk_errors() -> AbstractContextManager[None]:
    """Turn an error of the file system into a `DownloadError` that names the cache folder."""
    remedy = f"Free some space there, or set {CACHE_VARIABLE} to a folder that can be written."
    return files.disk_errors(cache_dir(), DownloadError, remedy)


def require_space(needed_bytes: int, folder: Path | None = None) -> None:
    """Refuse before the work what could not end well.

    Args:
        needed_bytes: how much will be written.
        folder: where; made if it does not exist; None means the cache folder.

    Raises:
        OSError: ENOSPC, less than `needed_bytes` free.
    """
    folder = folder or cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder).free < needed_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


@contextmanager
def making(key: str, what: str, on_progress: OnProgress, cancelled: Cancelled) -> Iterator[Path]:
    """The right to make one model: one process or thread at a time, in a temporary folder that never survives.

    Args:
        key: of the model, see `model_dir`.
        what: for a person, shown while another process is at it.
        on_progress: told about waiting.
        cancelled: asked while waiting.

    Yields:
        An empty folder on the same file system as `model_dir(key)`.

    Raises:
        DownloadError: cancelled while waiting.
        OSError: the cache cannot be written.
    """
    from filelock import FileLock, Timeout

    partial = cache_dir() / "partial" / key
    locks = cache_dir() / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    lock = FileLock(locks / f"{key}.lock")
    while True:
        try:
            lock.acquire(timeout=_LOCK_POLL_S)
            break
        except Timeout:
            on_progress(Progress(f"Waiting for another specviz that is fetching {what}"))
            check_cancelled(cancelled)
    try:
        # Whatever lies here belongs to a process that was killed: a living one would hold the lock.
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield Path(tempfile.mkdtemp(dir=partial))
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        lock.release()


def move_into_place(finished: Path, key: str) -> Path:
    """Make a finished folder visible under its key, in one step; only inside `making` of the same key.

    A damaged model of that key goes out of the way first, whole: another process sees it, nothing, or the new one.

    Args:
        finished: inside the folder that `making` gave.
        key: see `model_dir`.

    Returns:
        Where it is now.
    """
    final = model_dir(key)
    final.parent.mkdir(parents=True, exist_ok=True)
    take_away(key, finished.parent)
    os.replace(finished, final)
    return final


def take_away(key: str, temporary: Path) -> None:
    """Make what lies under a key invisible, in one step; it goes with the temporary folder that `making` gave."""
    with suppress(FileNotFoundError):
        os.replace(model_dir(key), temporary / "taken-away")
