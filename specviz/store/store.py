"""Models by name: looked up and fetched. See `specviz.store.sources` for what a name can be.

Nothing here imports MLX before a conversion needs it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specviz.core.errors import UnsupportedModelError
from specviz.core.wait import Wait
from specviz.engines import distilled
from specviz.engines.gguf.parts import read_model
from specviz.store import conversion, hub
from specviz.store.gguf import default, file
from specviz.store.gguf.variants import variants_of
from specviz.store.sources import ModelSource, check_complete, check_kinds, resolve
from specviz.store.workspace import disk_errors


def inspect(name: str) -> ModelSource:
    """What a name means, with a check of the files on the disk: no network, no conversion, no model library.

    Raises:
        UnknownModelError: see `resolve`.
        UnsupportedModelError: a folder that lacks a file, a GGUF file that is damaged, one part of a model without the
            others, a damaged distilled draft, or a file that cannot be read.
    """
    source = resolve(name)
    if source.kind == "package":
        _check_installed(source)
    if source.kind in ("folder", "package"):
        check_complete(Path(source.location))
        check_kinds(Path(source.location))
        if distilled.is_distilled(Path(source.location)):
            distilled.check_folder(Path(source.location))
    elif (here := _gguf_on_disk(source)) is not None:
        read_model(Path(here.location))
    return source


def local_path(name: str) -> Path | None:
    """The model's folder if it is on this machine and ready to load; None if `pull` has to fetch or convert it.

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
        case "wheel":
            return conversion.existing(source)
        case _:
            here = _gguf_on_disk(source)
            return conversion.existing(here) if here else None


def pull(name: str, wait: Wait = Wait()) -> Path:
    """Fetch and convert a model. A model that is on this machine needs no network and no other process.

    Args:
        name: see `specviz.store.sources`.
        wait: for download and conversion. Cancelled, it ends with a `DownloadError`.

    Returns:
        A folder that mlx-lm loads.

    Raises:
        UnknownModelError: no such model.
        DownloadError: it could not be fetched, checked or stored; no incomplete model is left.
        UnsupportedModelError: a folder that lacks a file, a GGUF file that cannot be used, or a model that is part of
            specviz and is missing.
    """
    source = resolve(name)
    if source.kind == "package":
        _check_installed(source)
    folder = local_path(name)
    if folder is None:
        if source.kind == "hub":
            size = source.known.download_bytes if source.known else 0
            folder = hub.fetch(source.location, wait, size)
            _refuse_gguf_repository(source.location)
        else:
            if source.kind == "hub-gguf":
                source = replace(source, kind="gguf", location=str(file.gguf_file(source, wait)))
            with disk_errors():
                folder = conversion.converted(source, wait)
    check_complete(folder)
    if not source.is_gguf:  # a conversion that is damaged is found out and repeated by its loader
        check_kinds(folder)
    return folder


def _gguf_on_disk(source: ModelSource) -> ModelSource | None:
    """A GGUF model, apart from the wheel's, as the file that it is on this machine; None where it is not here."""
    path = file.gguf_here(source) if source.kind in ("gguf", "hub-gguf") else None
    return replace(source, kind="gguf", location=str(path)) if path else None


def _refuse_gguf_repository(repo: str) -> None:
    """Refuse a repository that has GGUF models and nothing for MLX, which its name did not say."""
    models = variants_of(hub.listed(repo))
    if models and hub.cached(repo) is None:
        raise UnsupportedModelError(
            f"{repo} has GGUF models only: {', '.join(dict.fromkeys(model.label for model in models[:40]))}.",
            f"Name one of them, as in {repo}:{models[0].label}",
        )


def _check_installed(source: ModelSource) -> None:
    folder = Path(source.location)
    if not distilled.is_distilled(folder):
        raise UnsupportedModelError(
            f"{source.name} is part of specviz, but this copy lacks it: there is no draft in {folder}.",
            "Install specviz again, with its weights; until then n-gram lookup fits every target.",
        )


def gguf_here(name: str) -> Path | None:
    """The GGUF file that `pull_gguf` would return, if it is on this machine; None otherwise.

    Raises:
        UnknownModelError: see `resolve`.
    """
    source = resolve(name).as_gguf()
    if source is None:
        return None
    return default.quantised_here() if source.kind == "wheel" else file.gguf_here(source)


def pull_gguf(name: str, wait: Wait = Wait()) -> Path:
    """The GGUF file that the llama engine loads for a name, fetched and converted where it is not on this machine.

    Raises:
        UnknownModelError, DownloadError: as `pull`.
        UnsupportedModelError: the model has no GGUF file.
    """
    source = resolve(name).as_gguf()
    if source is None:
        raise UnsupportedModelError(
            f"{name} is in MLX's format, and the GGUF engine reads GGUF files only.",
            "Use it with --engine mlx, or give a GGUF file: USER/REPO:QUANT of the Hugging Face hub, or a path.",
        )
    if source.kind != "wheel":
        return file.gguf_file(source, wait)
    with disk_errors():
        return default.quantised(wait)
