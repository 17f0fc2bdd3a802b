"""Names of models → a folder on this machine that mlx-lm loads.

A name is one of `KNOWN`, a Hugging Face repository (`org/name`), a folder, or a GGUF file of the Llama family. A folder
may hold a distilled draft. Nothing here imports MLX before a conversion needs it.
"""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import os
import re
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specviz.core.errors import DownloadError, UnknownModelError, UnsupportedModelError
from specviz.core.ports import OnProgress, Progress
from specviz.engines import distilled
from specviz.engines.gguf.check import check_gguf
from specviz.store import hub, manifest, wheel
from specviz.store.known import KNOWN, PACKAGE, WHEEL, KnownModel
from specviz.store.workspace import (
    Cancelled,
    check_cancelled,
    disk_errors,
    making,
    model_dir,
    move_into_place,
    require_space,
    take_away,
)

DEFAULT = KNOWN[0].name
# In the keys of converted models: raise it when a conversion writes something else than before.
_CONVERSION = 1
_SHOWN_MAX = 200
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")

Kind = Literal["wheel", "hub", "package", "folder", "gguf"]
#: Where models lie that are part of specviz.
WEIGHTS = Path(__file__).parent.parent / "weights"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What a name means.

    Attributes:
        name: as it is shown and given back to `pull`.
        kind: where it comes from; "package": it is part of specviz.
        location: repository id, or absolute path; empty for the wheel.
        known: its entry in `KNOWN`, where it has one.
    """

    name: str
    kind: Kind
    location: str
    known: KnownModel | None = None


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A known model and whether it is here.

    Attributes:
        path: its folder; None while it is not on this machine.
        disk_bytes: what it takes there; None likewise.
    """

    known: KnownModel
    path: Path | None
    disk_bytes: int | None


def resolve(name: str) -> ModelSource:
    """What a name means. Looks at the disk, never at the network.

    Raises:
        UnknownModelError: neither a known name, nor of the form `org/name`, nor a folder or GGUF file; near matches
            are suggested.
        UnsupportedModelError: something is there, but may not be looked at.
    """
    name = name.strip()
    for known in KNOWN:
        if name.lower() == known.name or (known.repository and name.lower() == known.repository.lower()):
            return _known_source(known)
    path, found = _on_disk(name)
    if found == "folder":
        return ModelSource(name, "folder", str(path))
    gguf = path.suffix.lower() == ".gguf"
    if found == "file":
        if gguf:
            return ModelSource(name, "gguf", str(path))
        raise UnknownModelError(f"{name} is a file, but no GGUF file.", "Give its folder, or a .gguf file.")
    if _REPOSITORY.fullmatch(name) and not gguf and not name.startswith("."):
        _check_repository(name)
        return ModelSource(name, "hub", name)
    names = [known.name for known in KNOWN]
    near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known names: {', '.join(names)}."
    raise UnknownModelError(
        f"There is no model {_short(name)!r}, and no such folder or file.", f"{hint} A repository is written org/name."
    )


def _known_source(known: KnownModel) -> ModelSource:
    if known.source == WHEEL:
        return ModelSource(known.name, "wheel", "", known)
    if known.source == PACKAGE:
        return ModelSource(known.name, "package", str(WEIGHTS / known.name), known)
    return ModelSource(known.name, "hub", known.source, known)


def _on_disk(name: str) -> tuple[Path, Literal["folder", "file", ""]]:
    """The absolute path that a name may mean, and what is there."""
    path = Path(name)
    if not name:
        return path, ""
    try:
        path = path.expanduser().absolute()
        mode = path.stat().st_mode
    except PermissionError as exc:
        raise _unreadable(path, exc) from exc
    except (OSError, RuntimeError, ValueError):  # not there; too long; no such user's home; a NUL
        return path, ""
    return path, "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else ""


def _check_repository(name: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined, unused-ignore]

    try:
        validate_repo_id(name)
    except HFValidationError as exc:
        raise UnknownModelError(
            f"There is no folder {_short(name)!r}, and no repository can be called so.",
            "A repository is written org/name, of letters, digits, '-', '_' and '.', at most 96 characters, "
            "with no '--' or '..', and no '-' or '.' at either end.",
        ) from exc


def _unreadable(path: Path, exc: OSError) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"{_short(str(path))} cannot be read: {exc.strerror or exc}.", "Look at its permissions, or give another path."
    )


def _short(name: str) -> str:
    return name if len(name) <= _SHOWN_MAX else f"{name[:_SHOWN_MAX]}…"


def inspect(name: str) -> ModelSource:
    """What a name means, and a look at what is on the disk already: no network, no conversion, no model library.

    Raises:
        UnknownModelError: see `resolve`.
        UnsupportedModelError: a folder that lacks a file, a damaged GGUF file, or one of another architecture; a
            damaged distilled draft; something that cannot be read.
    """
    source = resolve(name)
    if source.kind == "package":
        _check_installed(source)
    if source.kind in ("folder", "package"):
        check_complete(Path(source.location))
        if distilled.is_distilled(Path(source.location)):
            distilled.check_folder(Path(source.location))
    elif source.kind == "gguf":
        check_gguf(Path(source.location))
    return source


def local_path(name: str) -> Path | None:
    """The model's folder if it is on this machine, ready to load; None if `pull` would have work to do.

    Raises:
        UnknownModelError: see `resolve`.
    """
    source = resolve(name)
    match source.kind:
        case "folder":
            return Path(source.location)
        case "package":
            return folder if distilled.is_distilled(folder := Path(source.location)) else None
        case "hub":
            return hub.cached(source.location)
        case _:
            return _made(_key(source))


def pull(name: str, on_progress: OnProgress = lambda progress: None, cancelled: Cancelled = lambda: False) -> Path:
    """Make a model available, and do nothing where it is already: then no network and no other process is needed.

    Args:
        name: see the top of this file.
        on_progress: told in bytes while something is downloaded.
        cancelled: asked often; true ends the work with a `DownloadError`.

    Returns:
        A folder that mlx-lm loads.

    Raises:
        UnknownModelError: no such model.
        DownloadError: it could not be fetched, checked or stored; nothing half-made is left.
        UnsupportedModelError: a folder that lacks a file, a GGUF file that cannot be used, or a model that should
            have come with specviz and is not there.
    """
    source = resolve(name)
    if source.kind == "package":
        _check_installed(source)
    folder = local_path(name)
    if folder is None:
        if source.kind == "hub":
            folder = hub.fetch(
                source.location, on_progress, cancelled, source.known.download_bytes if source.known else 0
            )
        else:
            with disk_errors():
                folder = _make(source, on_progress, cancelled)
    check_complete(folder)
    return folder


def refuse_damaged(name: str) -> None:
    """Look for the reason when a model did not load: remove it if specviz made it and its files have changed since.

    Raises:
        DownloadError: it was damaged.
        UnknownModelError: see `resolve`.
    """
    source = resolve(name)
    if source.kind not in ("wheel", "gguf"):
        return
    key = _key(source)
    if manifest.contents_fit(model_dir(key)):
        return
    with disk_errors(), making(key, name, lambda progress: None, lambda: False) as temporary:
        if not manifest.contents_fit(model_dir(key)):  # else another process has replaced it meanwhile
            take_away(key, temporary)
    raise DownloadError(
        f"The converted model {source.name} was damaged on the disk, and has been removed: "
        "a SHA-256 was not the one that was noted when it was made.",
        f"Make it anew: python -m specviz models pull {shlex.quote(source.name)}",
    )


def listing() -> list[ListedModel]:
    """The known models, with those that are here."""
    listed = []
    for known in KNOWN:
        path = local_path(known.name)
        listed.append(ListedModel(known, path, _disk_bytes(path) if path else None))
    return listed


def check_complete(folder: Path) -> None:
    """Refuse a folder that lacks what a model, or a distilled draft, needs.

    Raises:
        UnsupportedModelError: naming what is missing; or the folder cannot be read.
    """
    try:
        names = os.listdir(folder)
    except OSError as exc:
        raise _unreadable(folder, exc) from exc
    is_draft = distilled.DESCRIPTION_FILE in names
    tokenizer = ("tokenizer (tokenizer.json)", ["tokenizer.json", "tokenizer.model", "vocab.json", "*.tiktoken"])
    tokens = (f"map of its tokens ({distilled.VOCABULARY_FILE})", [distilled.VOCABULARY_FILE])
    missing = [
        what
        for what, patterns in (
            ("config.json", ["config.json"]),
            ("weights (model*.safetensors)", ["model*.safetensors"]),
            tokens if is_draft else tokenizer,
        )
        if not any(fnmatch.filter(names, p) for p in patterns)
    ]
    if missing and is_draft:
        raise UnsupportedModelError(
            f"{folder} is not a whole distilled draft: it has no {' and no '.join(missing)}.",
            "Copy the folder again, with all of its files.",
        )
    if missing:
        raise UnsupportedModelError(
            f"{folder} is not a model that mlx-lm can load: it has no {' and no '.join(missing)}.",
            "Give a folder in the Hugging Face layout, with weights as safetensors.",
        )


def _check_installed(source: ModelSource) -> None:
    folder = Path(source.location)
    if not distilled.is_distilled(folder):
        raise UnsupportedModelError(
            f"{source.name} is a part of specviz that this copy lacks: there is no draft in {folder}.",
            "Fetch or install specviz again, with its weights; until then n-gram lookup fits every target.",
        )


def _make(source: ModelSource, on_progress: OnProgress, cancelled: Cancelled) -> Path:
    from specviz.engines.mlx.convert import convert

    key = _key(source)
    title = source.known.title if source.known else Path(source.location).name
    with making(key, title, on_progress, cancelled) as temporary:
        if made := _made(key):  # by another process, while this one waited
            return made
        if source.kind == "wheel":
            require_space(wheel.NEEDED_BYTES)
            gguf = wheel.fetch_gguf(temporary, on_progress, cancelled)
        else:
            gguf = Path(source.location)
            require_space(gguf.stat().st_size + 16_000_000)
        check_cancelled(cancelled)
        on_progress(Progress(f"Converting {title}", 0, 1))
        finished = temporary / "converted"
        finished.mkdir()
        convert(gguf, finished)
        manifest.write(finished)
        moved = move_into_place(finished, key)
        on_progress(Progress(f"Converting {title}", 1, 1))
        return moved


def _made(key: str) -> Path | None:
    """A converted model, if it is here and no file of it is missing or cut: another try of `pull` replaces it."""
    folder = model_dir(key)
    try:
        check_complete(folder)
    except UnsupportedModelError:
        return None
    return folder if manifest.sizes_fit(folder) else None


def _key(source: ModelSource) -> str:
    """The folder name of a converted model: another file, or another conversion, has another key."""
    if source.kind == "wheel":
        return f"{source.name}-v{_CONVERSION}"
    try:
        path = Path(source.location).resolve()
        status = path.stat()
    except OSError as exc:
        raise _unreadable(Path(source.location), exc) from exc
    identity = f"{path}\0{status.st_size}\0{status.st_mtime_ns}".encode(errors="surrogateescape")
    seen = hashlib.sha256(identity).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', path.stem)[:80]}-{seen}-v{_CONVERSION}"


def _disk_bytes(folder: Path) -> int:
    # The hub's cache holds links to the files proper; stat follows them.
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
