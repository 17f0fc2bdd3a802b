"""A distilled draft as a GGUF file, made once from its folder."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from specviz.core.wait import Progress, Wait
from specviz.store import manifest
from specviz.store.workspace import check_cancelled, disk_errors, making, model_dir, move_into_place, require_space

_FILE = "draft.Q8_0.gguf"
_VERSION = 1  # to be raised when `write_draft` writes something else than before


def draft_gguf(folder: Path, wait: Wait = Wait()) -> Path:
    """The GGUF file of a draft, made now or earlier.

    Args:
        folder: a complete distilled draft.

    Raises:
        UnsupportedModelError: its weights are damaged.
        DownloadError: the cache cannot be written.
    """
    from specviz.engines.llama.draft_file import write_draft

    key = _key(folder)
    made = model_dir(key)
    if (made / manifest.NAME).is_file() and manifest.sizes_fit(made):
        return made / _FILE
    with disk_errors(), making(key, folder.name, wait) as temporary:
        check_cancelled(wait)
        require_space(8 * (folder / "model.safetensors").stat().st_size)  # at most 32 bits for each 4
        wait.on_progress(Progress(f"Converting {folder.name}", 0, 1))
        finished = temporary / "finished"
        finished.mkdir()
        write_draft(folder, finished / _FILE)
        manifest.write(finished)
        wait.on_progress(Progress(f"Converting {folder.name}", 1, 1))
        return move_into_place(finished, key) / _FILE


def _key(folder: Path) -> str:
    """Each draft and each change of its weights has its own."""
    status = (folder / "model.safetensors").stat()
    identity = f"{folder.resolve()}\0{status.st_size}\0{status.st_mtime_ns}".encode(errors="surrogateescape")
    seen = hashlib.sha256(identity).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', folder.name)[:80]}-{seen}-gguf-v{_VERSION}"
