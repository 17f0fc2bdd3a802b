"""Names of models: what each of them means, by the list of known models and a look at the disk.

A name is one of `KNOWN`, a Hugging Face repository (`org/name`), a GGUF model of one (`org/name:Q4_K_M`, also behind
`hf.co/`), a model of Ollama's (`ollama/NAME:TAG`), a folder, or a GGUF file.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specviz.core.errors import UnknownModelError, UnsupportedModelError
from specviz.core.kinds import ANNEX_POINTER, FOLDER, GGUF, JSON, LFS_POINTER, SAFETENSORS, FileKind, kind_at
from specviz.engines import distilled
from specviz.store.gguf.found import OLLAMA, in_ollama
from specviz.store.known import KNOWN, PACKAGE, WHEEL, KnownModel

_SHOWN_MAX = 200
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
# The name of a quantization, or of a file.
_GGUF_MODEL = re.compile(r"[\w.-]+/[\w.-]+:[\w+()\[\] ,=@#./-]{1,400}")
#: What llama.cpp's and Ollama's users, and a browser's address bar, have in front of a repository.
_HUB_PREFIX = re.compile(r"(https?://)?(hf\.co|huggingface\.co)/", re.IGNORECASE)

Kind = Literal["wheel", "hub", "hub-gguf", "package", "folder", "gguf"]
#: The folder of the models that are part of specviz.
WEIGHTS = Path(__file__).parent.parent / "weights"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """What a name means.

    Attributes:
        name: as it is shown. It has the same meaning when it is resolved again.
        kind: where the model comes from; "hub-gguf": a GGUF file of a repository; "package": it is part of specviz.
        location: repository id, with the quantization for "hub-gguf", or absolute path; empty for the wheel.
        known: its entry in `KNOWN`; None where it has none.
    """

    name: str
    kind: Kind
    location: str
    known: KnownModel | None = None

    @property
    def is_gguf(self) -> bool:
        """Whether it is a GGUF file, which the llama engine reads; otherwise it is a folder for MLX."""
        return self.kind in ("wheel", "gguf", "hub-gguf")

    def as_gguf(self) -> ModelSource | None:
        """What the name means for the llama engine; None where the model has no GGUF file."""
        if self.is_gguf:
            return self
        if self.known is None or not self.known.gguf or self.name != self.known.name:
            return None  # a repository that is named is meant
        return ModelSource(self.name, "hub-gguf", self.known.gguf, self.known)


def resolve(name: str) -> ModelSource:
    """What a name means. Uses the disk, not the network.

    Raises:
        UnknownModelError: neither a known name, nor of the form `org/name`, nor a folder or GGUF file; near matches
            are suggested. A model that Ollama does not have; those that it has are listed.
        UnsupportedModelError: a path that the user may not read.
    """
    name = name.strip()
    if prefix := _HUB_PREFIX.match(name):
        name = name[prefix.end() :].rstrip("/")
    for known in KNOWN:
        if name.lower() == known.name:
            return _known_source(known)
        if known.repository and name.lower() == known.repository.lower():
            return ModelSource(known.repository, "hub", known.repository, known)
    path, there = _on_disk(name)
    gguf = path.suffix.lower() == ".gguf"
    if there == FOLDER:
        return ModelSource(name, "folder", str(path))
    if there is not None:
        if gguf or there == GGUF:
            return ModelSource(name, "gguf", str(path))
        raise UnknownModelError(
            f"{_short(name)} is {there.name}, not a GGUF file.", there.remedy or "Give its folder, or a GGUF file."
        )
    if name.startswith(OLLAMA):
        return ModelSource(name, "gguf", str(in_ollama(name.removeprefix(OLLAMA))))
    repository = _GGUF_MODEL.fullmatch(name) or (not gguf and _REPOSITORY.fullmatch(name))
    if repository and not name.startswith("."):
        repo, _, tag = name.partition(":")
        _check_repository(repo)
        # No network here: what a repository without a tag holds is known by its name.
        if not tag and "gguf" not in name.lower():
            return ModelSource(name, "hub", name)
        same = (known for known in KNOWN if known.gguf.partition(":")[0].lower() == repo.lower())
        return ModelSource(name, "hub-gguf", name, next(same, None))
    names = [known.name for known in KNOWN]
    near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Known names: {', '.join(names)}."
    raise UnknownModelError(
        f"There is no model {_short(name)!r}, and no such folder or file.",
        f"{hint} A repository is written org/name, and a GGUF model in one org/name:Q4_K_M.",
    )


def _known_source(known: KnownModel) -> ModelSource:
    if known.source == WHEEL:
        return ModelSource(known.name, "wheel", "", known)
    if known.source == PACKAGE:
        return ModelSource(known.name, "package", str(WEIGHTS / known.name), known)
    return ModelSource(known.name, "hub", known.source, known)


def _on_disk(name: str) -> tuple[Path, FileKind | None]:
    """The absolute path that a name may mean, and what is there; None for nothing."""
    path = Path(name)
    if not name:
        return path, None
    try:
        path = path.expanduser().absolute()
        return path, kind_at(path)
    except PermissionError as exc:
        raise unreadable(path, exc) from exc
    except (OSError, RuntimeError, ValueError):  # absent; too long; an unknown user's home; a NUL
        return path, None


def _check_repository(name: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined, unused-ignore]

    try:
        validate_repo_id(name)
    except HFValidationError as exc:
        raise UnknownModelError(
            f"There is no folder {_short(name)!r}, and it is no valid name of a repository.",
            "A repository is written org/name, of letters, digits, '-', '_' and '.', at most 96 characters, "
            "with no '--' or '..', and no '-' or '.' at either end.",
        ) from exc


def unreadable(path: Path, exc: OSError) -> UnsupportedModelError:
    """The error for a file or folder that the system does not let us read."""
    return UnsupportedModelError(
        f"{_short(str(path))} cannot be read: {exc.strerror or exc}.", "Look at its permissions, or give another path."
    )


def _short(name: str) -> str:
    return name if len(name) <= _SHOWN_MAX else f"{name[:_SHOWN_MAX]}…"


def check_complete(folder: Path) -> None:
    """Refuse a folder that lacks a file that a model, or a distilled draft, needs.

    Raises:
        UnsupportedModelError: naming what is missing; or the folder cannot be read.
    """
    try:
        names = os.listdir(folder)
    except OSError as exc:
        raise unreadable(folder, exc) from exc
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
            f"{folder} is not a complete distilled draft: it has no {' and no '.join(missing)}.",
            "Copy the folder again, with all of its files.",
        )
    if missing and (gguf := sorted(fnmatch.filter(names, "*.gguf"))):
        raise UnsupportedModelError(
            f"{folder} holds GGUF files, and is no model in the Hugging Face layout.",
            f"Give the file: {_short(str(folder / gguf[0]))}" + (" or another." if len(gguf) > 1 else ""),
        )
    if missing:
        raise UnsupportedModelError(
            f"{folder} is not a model that mlx-lm can load: it has no {' and no '.join(missing)}.",
            "Give a folder in the Hugging Face layout, with weights as safetensors.",
        )


#: The files of a model that are read; and what they have to be, by their endings.
_READ = (
    "config.json", "generation_config.json", "model*.safetensors", "model*.json", "tokenizer*.json", "tokenizer.model",
    "vocab.json", "special_tokens_map.json", "*.tiktoken", "chat_template.*",
    distilled.DESCRIPTION_FILE, distilled.VOCABULARY_FILE,
)  # fmt: skip
_KINDS = {".safetensors": SAFETENSORS, ".json": JSON}


def check_kinds(folder: Path) -> None:
    """Refuse a folder in which a file is something else than its name says, such as a Git LFS pointer.

    Raises:
        UnsupportedModelError: naming the file and what it is; or it cannot be read.
    """
    for name in sorted({n for pattern in _READ for n in fnmatch.filter(os.listdir(folder), pattern)}):
        file, wanted = folder / name, _KINDS.get(Path(name).suffix)
        try:
            kind = kind_at(file)
        except OSError as exc:
            raise unreadable(file, exc) from exc
        if kind in (LFS_POINTER, ANNEX_POINTER) or (wanted is not None and kind != wanted):
            raise UnsupportedModelError(
                f"{_short(str(file))} is {kind.name}" + (f", not {wanted.name}." if wanted else "."),
                kind.remedy or "Fetch it again.",
            )
