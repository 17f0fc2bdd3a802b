"""GGUF models that other programs have put on this machine: Ollama, LM Studio, llama.cpp, the Hugging Face client."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec
import platformdirs

from specviz.core.errors import UnknownModelError
from specviz.store import hub
from specviz.store.gguf.summary import GgufSummary, summary_of
from specviz.store.gguf.variants import Variant, matching, variants_of

#: How the names of Ollama's models begin.
OLLAMA = "ollama/"

_HOST, _NAMESPACE, _TAG = "registry.ollama.ai", "library", "latest"
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")
_MODEL_LAYER, _ADAPTER_LAYER = "application/vnd.ollama.image.model", "application/vnd.ollama.image.adapter"
_MANIFEST_BYTES_MAX = 1 << 20
#: In one place. A folder with more is no place for models.
_FILES_MAX = 10_000
#: The name of a file in llama.cpp's cache: USER_REPO_FILE.
_IN_LLAMA_CACHE = re.compile(r"([A-Za-z0-9.-]+)_(.+?-GGUF)_(.+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model on this machine that can be used without a download.

    Attributes:
        name: as it is written behind `local:` and `model:`.
        place: whose it is, such as "Ollama".
        path: its file; of a split model the first part.
        label: its quantization, or the name of its file.
        disk_bytes: of all parts.
        summary: what the file says.
    """

    name: str
    place: str
    path: Path
    label: str
    disk_bytes: int
    summary: GgufSummary

    @property
    def about(self) -> str:
        """What it is and whose, in a sentence."""
        what = (self.summary.size, self.label, f"{self.disk_bytes / 1e6:,.0f} MB on the disk", f"from {self.place}")
        return f"{', '.join(filter(None, what))}."


class _Layer(msgspec.Struct, frozen=True):
    kind: str = msgspec.field(name="mediaType", default="")
    digest: str = ""


class _Manifest(msgspec.Struct, frozen=True):
    layers: list[_Layer] = msgspec.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Shelf:
    """The GGUF files of one repository in one place.

    Attributes:
        repo: `organisation/name`.
        folder: that holds them.
        prefix: that the names of its files have.
        names: without the prefix.
    """

    repo: str
    place: str
    folder: Path
    prefix: str
    names: tuple[str, ...]

    def path(self, name: str) -> Path:
        return self.folder / f"{self.prefix}{name}"

    def models(self) -> list[Variant]:
        return [variant for variant in variants_of(self.names) if not variant.missing]


def found() -> list[FoundModel]:
    """The models of all places, without those that do not continue text. Opens no file but to read its beginning."""
    models: dict[str, FoundModel] = {}
    for shelf in _shelves():
        variants = shelf.models()
        labels = [variant.label for variant in variants]
        for variant in variants:
            tag = variant.label if labels.count(variant.label) == 1 else variant.files[0]
            _add(models, f"{shelf.repo}:{tag}", shelf.place, [shelf.path(name) for name in variant.files])
    for name, path in _ollama_models():
        _add(models, f"{OLLAMA}{name}", "Ollama", [path])
    return list(models.values())


def _add(models: dict[str, FoundModel], name: str, place: str, paths: list[Path]) -> None:
    summary = summary_of(paths[0])
    if name in models or summary is None or not summary.decodes:
        return
    try:
        size = sum(path.stat().st_size for path in paths)
    except OSError:
        return
    label = summary.quantization if name.startswith(OLLAMA) else name.partition(":")[2]
    models[name] = FoundModel(name, place, paths[0], label, size, summary)


def in_repository(repo: str, tag: str) -> Path | None:
    """The first file of a repository's model, if another program or the hub's client has put it on this machine.

    Args:
        repo: `organisation/name`. tag: see `variants.matching`.
    """
    for shelf in _shelves(repo):
        chosen = matching(shelf.models(), tag)
        if len(chosen) == 1:
            return shelf.path(chosen[0].files[0])
    return None


def in_ollama(name: str) -> Path:
    """The file of a model that Ollama has.

    Args:
        name: as Ollama's own list has it, such as "llama3.2:3b"; without a tag it is "latest".

    Raises:
        UnknownModelError: it has no such model; those that it has get listed.
    """
    wanted = name if ":" in name.rpartition("/")[2] else f"{name}:{_TAG}"
    models = dict(_ollama_models())
    if path := models.get(wanted):
        return path
    there = f"It has {', '.join(sorted(models)[:40])}." if models else "No model of Ollama was found."
    raise UnknownModelError(
        f"Ollama has no model {wanted[:200]!r} on this machine.",
        f"{there} Fetch it with `ollama pull`, and set OLLAMA_MODELS if its folder is not the usual one.",
    )


def _shelves(repo: str = "") -> Iterator[_Shelf]:
    """Every place that sorts its files by repository; only those of one repository if one is given."""
    yield from _hub_shelves(repo)
    for root in (_home(".lmstudio", "models"), _home(".cache", "lm-studio", "models")):
        folders = [root / repo] if repo else _subfolders(root, 2)
        for folder in folders:
            if names := tuple(_gguf_names(folder)):
                yield _Shelf(f"{folder.parent.name}/{folder.name}", "LM Studio", folder, "", names)
    yield from _llama_shelves(repo)


def _hub_shelves(repo: str) -> Iterator[_Shelf]:
    for name in [repo] if repo else hub.cached_repositories():
        folder = hub.files_folder(name)
        if folder and (names := tuple(_gguf_names(folder))):
            yield _Shelf(name, "the Hugging Face cache", folder, "", names)


def _llama_shelves(repo: str) -> Iterator[_Shelf]:
    try:
        own = platformdirs.user_cache_dir("llama.cpp", appauthor=False, opinion=False)
    except RuntimeError:  # a user without a home
        own = ""
    folder = Path(os.environ.get("LLAMA_CACHE") or own or _home(".cache", "llama.cpp"))
    names = list(_gguf_names(folder))
    if repo:
        prefixes = {repo: f"{repo.replace('/', '_')}_"}
    else:
        split = [match for name in names if (match := _IN_LLAMA_CACHE.fullmatch(name))]
        prefixes = {f"{match[1]}/{match[2]}": f"{match[1]}_{match[2]}_" for match in split}
    for named, prefix in prefixes.items():
        if there := tuple(name.removeprefix(prefix) for name in names if name.startswith(prefix)):
            yield _Shelf(named, "llama.cpp", folder, prefix, there)


def _ollama_models() -> Iterator[tuple[str, Path]]:
    """The names of Ollama's models, as its own list has them, and their files."""
    given = os.environ.get("OLLAMA_MODELS")
    roots = [Path(given)] if given else [_home(".ollama", "models"), Path("/usr/share/ollama/.ollama/models")]
    for root in roots:
        manifests = root / "manifests"
        for folder in _subfolders(manifests, 3):
            for manifest in _files(folder):
                parts = manifest.relative_to(manifests).parts
                if not all(_WORD.fullmatch(part) for part in parts):
                    continue
                host, namespace, name, tag = parts
                shown = [part for part, usual in ((host, _HOST), (namespace, _NAMESPACE)) if part != usual]
                if path := _model_of(manifest, root / "blobs"):
                    yield f"{'/'.join([*shown, name])}:{tag}", path


def _model_of(manifest: Path, blobs: Path) -> Path | None:
    """The model of a manifest; None where it is damaged, or has an adapter beside its model."""
    try:
        with manifest.open("rb") as file:
            layers = msgspec.json.decode(file.read(_MANIFEST_BYTES_MAX), type=_Manifest).layers
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    digests = [match for layer in layers if layer.kind == _MODEL_LAYER and (match := _DIGEST.fullmatch(layer.digest))]
    if len(digests) != 1 or any(layer.kind == _ADAPTER_LAYER for layer in layers):
        return None
    path = blobs / f"sha256-{digests[0][1]}"
    return path if path.is_file() else None


def _home(*parts: str) -> Path:
    """A path in the user's home; one that does not exist where there is none."""
    return Path(os.path.expanduser("~"), *parts)


def _subfolders(folder: Path, depth: int) -> Iterator[Path]:
    """The folders so many levels below one, those that can be read."""
    try:
        children = sorted(islice((path for path in folder.iterdir() if path.is_dir()), _FILES_MAX))
    except OSError:
        return
    for child in children:
        if depth == 1:
            yield child
        else:
            yield from _subfolders(child, depth - 1)


def _files(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(islice((path for path in folder.iterdir() if path.is_file()), _FILES_MAX))
    except OSError:
        return


def _gguf_names(folder: Path) -> Iterator[str]:
    """The GGUF files in a folder and in those directly in it, with "/" between the two."""
    for inner in (folder, *_subfolders(folder, 1)):
        for file in _files(inner):
            if file.suffix.lower() == ".gguf":
                yield file.relative_to(folder).as_posix()
