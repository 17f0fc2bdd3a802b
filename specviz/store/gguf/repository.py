"""GGUF models of repositories on the Hugging Face hub, fetched into the hub's cache. A download can be continued."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from specviz.core.errors import DownloadError
from specviz.core.files import sha256_of
from specviz.core.wait import OnProgress, Progress, Wait
from specviz.store import hub
from specviz.store.gguf.variants import choose, variants_of
from specviz.store.workspace import one_at_a_time, require_space

_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEPT = "What has arrived is kept, and the next try goes on from there."


@dataclass(frozen=True, slots=True)
class _RemoteFile:
    """A file of a repository.

    Attributes:
        commit: where it is read.
        sha256: of its contents, by which the hub's cache names it; empty where the hub says none.
    """

    repo: str
    commit: str
    name: str
    nbytes: int
    sha256: str

    @property
    def blob(self) -> Path:
        """Where its contents are in the cache."""
        return hub.folder_of(self.repo) / "blobs" / self.sha256

    @property
    def incomplete(self) -> Path:
        """Where its contents are until they are complete."""
        return self.blob.with_name(f"{self.sha256}.incomplete")

    @property
    def arrived_bytes(self) -> int:
        """How much of it is in the cache."""
        if not self.sha256:
            return 0
        return next((path.stat().st_size for path in (self.blob, self.incomplete) if path.exists()), 0)


def fetch(repo: str, tag: str, wait: Wait = Wait()) -> Path:
    """Download a model of a repository, and every part of one that is split.

    Args:
        repo: `organisation/name`.
        tag: the quantization, or the name of a file; empty chooses, see `variants.matching`.
        wait: its progress is in bytes; it can be cancelled whenever bytes arrive.

    Returns:
        The file in the hub's cache; of a split model the first part.

    Raises:
        SettingsError: a proxy or certificates that the environment names cannot be used.
        UnknownModelError: no such repository, one that requires an account, or no such model in it.
        DownloadError: no network, cut short, cancelled, disk full, or not what the hub has recorded.
    """
    from huggingface_hub import constants, hf_hub_download

    what = f"Downloading {repo}:{tag}" if tag else f"Downloading {repo}"
    wait.on_progress(Progress(what, 0, None, "bytes"))
    with hub.errors_of(repo, _KEPT):
        files = _files(repo, tag)
        total, done = sum(file.nbytes for file in files), 0
        require_space(total - sum(file.arrived_bytes for file in files), hub.folder_of(repo).parent)
        paths = []
        for file in files:
            part = Wait(_shifted(wait, what, done, total), wait.cancelled)
            if file.sha256 and file.nbytes <= constants.MAX_HTTP_DOWNLOAD_SIZE:
                _fetch_contents(file, what, part)
            # Finds the contents in the cache, and enters them there as a file of the repository.
            bar = hub.progress_bar(what, part, _KEPT)
            path = Path(hf_hub_download(repo, file.name, tqdm_class=bar))
            if file.sha256 and not path.is_symlink():  # a system without links has a copy
                file.blob.unlink(missing_ok=True)
            paths.append(path)
            done += file.nbytes
        return paths[0]


def _files(repo: str, tag: str) -> list[_RemoteFile]:
    """The files of a model, in order."""
    from huggingface_hub import HfApi

    info = HfApi().model_info(repo, files_metadata=True)
    there = {file.rfilename: file for file in info.siblings or ()}
    chosen = choose(variants_of(there), tag, repo)
    if chosen.missing:
        raise DownloadError(
            f"{repo} has not all parts of {chosen.label}: {chosen.missing[0]} is missing.", "Take another model of it."
        )
    files = []
    for name in chosen.files:
        lfs, size = there[name].lfs, there[name].size
        sha256 = lfs.sha256 if lfs and _SHA256.fullmatch(str(lfs.sha256)) else ""
        files.append(_RemoteFile(repo, str(info.sha), name, max(0, int(size or 0)), sha256))
    return files


def _fetch_contents(file: _RemoteFile, what: str, wait: Wait) -> None:
    """Download the contents of a file into the cache. The hub's own client would begin again from nothing."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined, unused-ignore]

    # The hub's client holds the same lock while it fetches the file.
    folder = hub.folder_of(file.repo)
    lock = folder.parent / ".locks" / folder.name / f"{file.sha256}.lock"
    with one_at_a_time(lock, file.repo, wait):
        if file.blob.exists():
            return
        file.blob.parent.mkdir(parents=True, exist_ok=True)
        if file.arrived_bytes > file.nbytes:
            file.incomplete.unlink()
        with file.incomplete.open("ab") as contents:
            http_get(
                hf_hub_url(file.repo, file.name, revision=file.commit),
                contents,
                resume_size=file.arrived_bytes,
                headers=build_hf_headers() | {"Accept-Encoding": "identity"},
                expected_size=file.nbytes,
                tqdm_class=hub.progress_bar(what, wait, _KEPT),
            )
        wait.on_progress(Progress(f"Checking {file.repo}", 0, 1))
        if sha256_of(file.incomplete) != file.sha256:
            file.incomplete.unlink()
            raise DownloadError(
                f"{file.name} of {file.repo} was damaged on its way: its SHA-256 is not the one that the hub has "
                "recorded.",
                "Try again: it is fetched from its beginning.",
            )
        os.replace(file.incomplete, file.blob)


def _shifted(wait: Wait, what: str, before: int, total: int) -> OnProgress:
    """Progress of one file as progress of all of them: `before` bytes were there when it began."""

    def report(progress: Progress) -> None:
        if progress.unit == "bytes":
            progress = Progress(what, before + progress.done, total, "bytes")
        wait.on_progress(progress)

    return report
