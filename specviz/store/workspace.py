"""The cache folder on disk. A model in it is complete or absent."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from specviz.core import files
from specviz.core.errors import DownloadError, SettingsError
from specviz.core.wait import Progress, Wait

CACHE_VARIABLE = "SPECVIZ_CACHE"
#: What a cancelled download leaves, unless it can be continued.
NOTHING_LEFT = "No incomplete model is left."
_LOCK_POLL_S = 0.2


def cache_dir() -> Path:
    """The folder for models: `SPECVIZ_CACHE`, or a folder in the user's cache.

    Raises:
        SettingsError: the user has no home folder, as a number that a container was started with (origin#23369).
    """
    import platformdirs

    given = os.environ.get(CACHE_VARIABLE, "").strip()
    try:
        folder = os.path.expanduser(given) if given else platformdirs.user_cache_dir("specviz")
    except RuntimeError:
        folder = "~"
    if folder.startswith("~"):
        whose = f"the user of {CACHE_VARIABLE}={given}" if given else "this user"
        raise SettingsError(
            f"There is no folder for models and benchmarks: the system knows no home folder of {whose}.",
            f"Set {CACHE_VARIABLE} to a folder that can be written.",
        )
    return Path(folder)


def model_dir(key: str) -> Path:
    """The folder of a converted model. It exists only when it is complete."""
    return cache_dir() / "models" / key


def check_cancelled(wait: Wait, left: str = NOTHING_LEFT) -> None:
    """Raise if the user has cancelled the download.

    Args:
        wait: asked whether it was.
        left: what is left of the download, in a sentence.

    Raises:
        DownloadError: cancelled.
    """
    if wait.cancelled():
        raise DownloadError("The download was cancelled.", f"{left} Start it again at any time.")


def disk_errors() -> AbstractContextManager[None]:
    """Turn an error of the file system into a `DownloadError` that names the cache folder."""
    remedy = f"Free some space there, or set {CACHE_VARIABLE} to a folder that can be written."
    return files.disk_errors(cache_dir(), DownloadError, remedy)


def require_space(needed_bytes: int, folder: Path | None = None) -> None:
    """Refuse work for which the disk has too little space.

    Args:
        needed_bytes: how much will be written.
        folder: where; it is made if it does not exist. None means the cache folder.

    Raises:
        OSError: ENOSPC, less than `needed_bytes` free.
    """
    folder = folder or cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder).free < needed_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


@contextmanager
def making(key: str, what: str, wait: Wait = Wait()) -> Iterator[Path]:
    """A temporary folder to make one model in, for one process or thread at a time; removed at the end.

    Args:
        key: of the model, see `model_dir`.
        what: the model's title, shown while another process makes it.
        wait: for another process that makes the same model.

    Yields:
        An empty folder on the same file system as `model_dir(key)`.

    Raises:
        DownloadError: cancelled while waiting.
        OSError: the cache cannot be written.
    """
    partial = cache_dir() / "partial" / key
    with one_at_a_time(cache_dir() / "locks" / f"{key}.lock", what, wait):
        try:
            # Anything here was left by a process that was killed: a running one would hold the lock.
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            yield Path(tempfile.mkdtemp(dir=partial))
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def one_at_a_time(file: Path, what: str, wait: Wait) -> Iterator[None]:
    """Hold a lock, which only one process or thread can.

    Args:
        file: of the lock; it is made.
        what: the title of the model that is fetched, shown while another process holds the lock.
        wait: for another process.

    Raises:
        DownloadError: cancelled while waiting.
        OSError: the file cannot be written.
    """
    from filelock import FileLock, Timeout

    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file)
    while True:
        try:
            lock.acquire(timeout=_LOCK_POLL_S)
            break
        except Timeout:
            wait.on_progress(Progress(f"Waiting for another specviz that is fetching {what}"))
            check_cancelled(wait)
    try:
        yield
    finally:
        lock.release()


def move_into_place(finished: Path, key: str) -> Path:
    """Move a finished folder to `model_dir(key)` in one step; only inside `making` of the same key.

    A damaged model there is moved away first, as a whole: other processes see it, nothing, or the new one.

    Args:
        finished: inside the folder of `making`.
        key: see `model_dir`.

    Returns:
        The new path.
    """
    final = model_dir(key)
    final.parent.mkdir(parents=True, exist_ok=True)
    take_away(key, finished.parent)
    os.replace(finished, final)
    return final


def take_away(key: str, temporary: Path) -> None:
    """Move the model of a key into the temporary folder of `making`, in one step, to be removed with it."""
    with suppress(FileNotFoundError):
        os.replace(model_dir(key), temporary / "taken-away")


def benchmark_folder() -> Path:
    """Where the page saves benchmarks: in the user's cache folder, or SPECVIZ_CACHE."""
    return cache_dir() / "benchmarks"
