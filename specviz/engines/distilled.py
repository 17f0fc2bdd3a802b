"""A distilled draft on disk: a small Llama with a pruned vocabulary, trained for one target.

It is a folder in mlx-lm's layout without a tokenizer. The draft reads and writes its target's token ids, by a map.

    config.json              mlx-lm's Llama config; `vocab_size` is V, the draft's own vocabulary
    model.safetensors        weights, perhaps quantised by MLX
    vocabulary.safetensors   `tokens` and `inputs`: see `DraftVocabulary`
    draft.json               which target it was trained for: see `Description`
    README.md                model card; not read by specviz

Nothing here imports MLX: a folder can be checked without loading it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.errors import PairingError, UnsupportedModelError
from specviz.core.kinds import JSON
from specviz.core.reading import Wanted, json_of, read_text
from specviz.core.vocabulary import Vocabulary, fingerprint

FORMAT = 1
DESCRIPTION_FILE = "draft.json"
VOCABULARY_FILE = "vocabulary.safetensors"
_TRAIN_AGAIN = "Fetch or distil the draft again: its files do not belong together."
_WANTED = Wanted("JSON", UnsupportedModelError, _TRAIN_AGAIN, (JSON,))
_SHA256_DIGITS = 64

Int32s = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class DraftVocabulary:
    """Which of its target's tokens a draft has, and what it reads instead of the others.

    Attributes:
        tokens: (V,) the target id of each draft id, strictly ascending, so that a row over draft ids is a sparse row
            over target ids.
        inputs: (target tokens,) for every target id, the draft id that the draft reads: that of the same token or,
            where the draft does not have the token, that of a similar one.
    """

    tokens: Int32s
    inputs: Int32s

    def __post_init__(self) -> None:
        """Check that both lists fit each other.

        Raises:
            UnsupportedModelError: a rule is broken; the message names the rule and the value.
        """
        for name, ids in (("tokens", self.tokens), ("inputs", self.inputs)):
            if ids.dtype != np.int32 or ids.ndim != 1 or len(ids) == 0:
                raise _damaged(
                    f"`{name}` must be a non-empty list of int32, and is {ids.dtype} of shape {tuple(ids.shape)}"
                )
        self._check_range("tokens", self.tokens, len(self.inputs), "target token")
        self._check_range("inputs", self.inputs, len(self.tokens), "draft token")
        falls = np.flatnonzero(self.tokens[1:] <= self.tokens[:-1])
        if len(falls):
            at = int(falls[0])
            raise _damaged(
                f"`tokens` must ascend strictly, and has {self.tokens[at]} before {self.tokens[at + 1]} at index {at}"
            )
        strays = np.flatnonzero(self.inputs[self.tokens] != np.arange(len(self.tokens)))
        if len(strays):
            own = int(strays[0])
            raise _damaged(
                f"a token that the draft has must be read as itself, and `inputs` gives draft id "
                f"{self.inputs[self.tokens[own]]} for target id {self.tokens[own]}, which is draft id {own}"
            )

    @staticmethod
    def _check_range(name: str, ids: Int32s, size: int, what: str) -> None:
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= size:
            raise _damaged(
                f"each of `{name}` must be a {what} from 0 to {size - 1}, and one is {low if low < 0 else high}"
            )


@dataclass(frozen=True, slots=True)
class Description:
    """draft.json: the target that a draft was trained for.

    Attributes:
        target: its name, such as `smollm2-135m`.
        target_tokens: the size of its vocabulary.
        target_vocabulary_sha256: see `specviz.core.vocabulary.fingerprint`.
        more: further keys, such as how it was trained. They are kept.
    """

    target: str
    target_tokens: int
    target_vocabulary_sha256: str
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, target: str, vocabulary: Vocabulary, **more: Any) -> Description:
        """The description of a draft for a target with this vocabulary."""
        return cls(target, len(vocabulary.pieces), fingerprint(vocabulary), more)


def is_distilled(folder: Path) -> bool:
    """Whether a folder contains a distilled draft, by its draft.json."""
    return (folder / DESCRIPTION_FILE).is_file()


def write_description(folder: Path, description: Description) -> None:
    """Write draft.json."""
    known = {
        "format": FORMAT,
        "target": description.target,
        "target_tokens": description.target_tokens,
        "target_vocabulary_sha256": description.target_vocabulary_sha256,
    }
    text = json.dumps({**description.more, **known}, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION_FILE).write_text(text + "\n", encoding="utf-8")


def read_description(folder: Path) -> Description:
    """Read draft.json.

    Raises:
        UnsupportedModelError: it is missing, is no JSON object, is of another format, or lacks a key.
    """
    path = folder / DESCRIPTION_FILE
    data = _read_object(path)
    number = data.pop("format", None)
    if number != FORMAT or isinstance(number, bool):
        raise UnsupportedModelError(
            f"{path} is of format {number!r}, and this version of specviz reads format {FORMAT}.",
            "Update specviz, or use a draft that was made for this version.",
        )
    target, tokens = data.pop("target", None), data.pop("target_tokens", None)
    sha256 = data.pop("target_vocabulary_sha256", None)
    for key, value, right, rule in (
        ("target", target, isinstance(target, str) and target.strip(), "a name"),
        ("target_tokens", tokens, type(tokens) is int and tokens > 0, "a whole number above 0"),
        ("target_vocabulary_sha256", sha256, _is_sha256(sha256), f"{_SHA256_DIGITS} hexadecimal digits"),
    ):
        if not right:
            raise UnsupportedModelError(f"`{key}` in {path} must be {rule}, not {_short(value)}.", _TRAIN_AGAIN)
    return Description(target, tokens, sha256.lower(), data)


def save_vocabulary(folder: Path, vocabulary: DraftVocabulary) -> None:
    """Write vocabulary.safetensors."""
    from safetensors.numpy import save_file

    arrays = {"tokens": vocabulary.tokens, "inputs": vocabulary.inputs}
    # safetensors writes the memory of an array, so a view with strides would be read back as other numbers.
    save_file({name: np.ascontiguousarray(a) for name, a in arrays.items()}, folder / VOCABULARY_FILE)


def read_vocabulary(folder: Path) -> DraftVocabulary:
    """Read vocabulary.safetensors and check it.

    Raises:
        UnsupportedModelError: it is missing or damaged, lacks a list, or breaks a rule of `DraftVocabulary`.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = folder / VOCABULARY_FILE
    try:
        arrays = load_file(path)
    # For a type that numpy does not have, safetensors raises a KeyError or an AttributeError.
    except (OSError, SafetensorError, ValueError, KeyError, AttributeError, TypeError) as exc:
        raise UnsupportedModelError(f"{path} cannot be read: {exc}.", _TRAIN_AGAIN) from exc
    missing = [f"`{name}`" for name in ("tokens", "inputs") if name not in arrays]
    if missing:
        raise UnsupportedModelError(f"{path} lacks {' and '.join(missing)}.", _TRAIN_AGAIN)
    return DraftVocabulary(arrays["tokens"], arrays["inputs"])


def check_folder(folder: Path) -> tuple[Description, DraftVocabulary]:
    """Read everything but the weights, and check that the files agree.

    Raises:
        UnsupportedModelError: a file is missing, damaged or does not fit another.
    """
    description, vocabulary = read_description(folder), read_vocabulary(folder)
    config = _read_object(folder / "config.json")
    if config.get("model_type") != "llama":
        raise UnsupportedModelError(
            f"`model_type` of a distilled draft must be 'llama', and in {folder / 'config.json'} it is "
            f"{_short(config.get('model_type'))}.",
            "Use a draft that specviz has made.",
        )
    if config.get("vocab_size") != len(vocabulary.tokens):
        raise UnsupportedModelError(
            f"`vocab_size` in {folder / 'config.json'} is {_short(config.get('vocab_size'))}, and "
            f"{VOCABULARY_FILE} has {len(vocabulary.tokens)} tokens.",
            _TRAIN_AGAIN,
        )
    if description.target_tokens != len(vocabulary.inputs):
        raise UnsupportedModelError(
            f"`target_tokens` in {folder / DESCRIPTION_FILE} is {description.target_tokens}, and {VOCABULARY_FILE} "
            f"has inputs for {len(vocabulary.inputs)} target tokens.",
            _TRAIN_AGAIN,
        )
    return description, vocabulary


def check_target(name: str, description: Description, vocabulary: Vocabulary) -> None:
    """Refuse a target that a draft was not trained for.

    Args:
        name: of the draft, for the message.
        vocabulary: the target's.

    Raises:
        PairingError: the target's vocabulary is not the one that the draft was trained for.
    """
    remedy = f"Use it with {_short(description.target)}, or use n-gram lookup, which fits every target."
    if description.target_tokens != len(vocabulary.pieces):
        raise PairingError(
            f"The draft {name} was distilled for {_short(description.target)}, which has "
            f"{description.target_tokens:,} tokens; this target has {len(vocabulary.pieces):,}.",
            remedy,
        )
    ours = fingerprint(vocabulary)
    if description.target_vocabulary_sha256 != ours:
        raise PairingError(
            f"The draft {name} was distilled for {_short(description.target)}, whose vocabulary has the fingerprint "
            f"{description.target_vocabulary_sha256[:12]}…; this target's is {ours[:12]}….",
            remedy,
        )


def _read_object(path: Path) -> dict[str, Any]:
    try:
        data = json_of(read_text(path, _WANTED))
    except ValueError as exc:
        raise UnsupportedModelError(f"{path} cannot be read: {exc}.", _TRAIN_AGAIN) from exc
    if not isinstance(data, dict):
        raise UnsupportedModelError(f"{path} must hold a JSON object, not {type(data).__name__}.", _TRAIN_AGAIN)
    return data


def _is_sha256(value: object) -> bool:
    return isinstance(value, str) and len(value) == _SHA256_DIGITS and not set(value.lower()) - set("0123456789abcdef")


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _damaged(what: str) -> UnsupportedModelError:
    return UnsupportedModelError(f"The draft's vocabulary is damaged: {what}.", _TRAIN_AGAIN)
