"""The settings of a distillation. A run that continues an unfinished one must have the same."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from specviz.core.errors import RunError, SettingsError
from specviz.core.files import sha256_of, write_whole
from specviz.core.names import parse_target
from specviz.distill.student import BITS

#: Settings that may differ from those of the unfinished run: when to stop, and the path of a file with equal contents.
_MAY_CHANGE = ("minutes", "prompts")
_RANGES: dict[str, tuple[float, float]] = {
    "minutes": (0.05, 100_000),
    "vocab": (16, 1_000_000),
    "seed": (0, 2**31 - 1),
    "max_tokens": (4, 512),
    "batch_tokens": (16, 1_000_000),
    "tokens": (1, 10**12),
    "steps": (1, 10**12),
    "learning_rate": (1e-7, 1),
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """The settings.

    Attributes:
        target: see `specviz.distill.subject.target_name`.
        minutes: for the whole run.
        layers: of the target, that the student starts from; None for the first ones and the last.
        vocab: tokens of the draft, at most.
        bits: of the finished weights.
        seed: of every random draw.
        prompts: path of a file with prompts; empty for those of specviz. prompts_sha256: of its contents.
        max_tokens: of one text.
        tokens: texts are written until they have so many tokens; None for as many as a share of the time allows.
        steps: of training; None for as many as the time allows. With both, a run does not depend on the clock.
        learning_rate: the highest; None for one that suits the student.
        batch_tokens: of one step, padding included.
    """

    target: str
    minutes: float = 60.0
    layers: tuple[int, ...] | None = None
    vocab: int = 8192
    bits: int = 6
    seed: int = 0
    prompts: str = ""
    prompts_sha256: str = ""
    max_tokens: int = 160
    tokens: int | None = None
    steps: int | None = None
    learning_rate: float | None = None
    batch_tokens: int = 1024

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            SettingsError: names the rule and the value.
        """
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:  # nan fails both
                raise SettingsError(f"{_option(name)} must be from {low:g} to {high:g}, not {value!r}.")
        if self.bits not in BITS:
            raise SettingsError(f"--bits must be one of {', '.join(map(str, BITS))}, not {self.bits}.")

    def command(self) -> str:
        """The command line that makes such a draft; FOLDER stands for the output."""
        target = parse_target(self.target).model or self.target
        words = ["python", "-m", "specviz", "distill", "--target", target, "--out", "FOLDER"]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("target", "prompts_sha256") and value not in (None, field.default):
                words += [_option(field.name), _word(value)]
        return shlex.join(words)


def prompt_file(path: Path | None) -> tuple[str, str]:
    """The fields of a recipe that name a file with prompts: `prompts` and `prompts_sha256`.

    Raises:
        SettingsError: it cannot be read.
    """
    if path is None:
        return "", ""
    try:
        return str(path), sha256_of(path)
    except OSError as exc:
        raise SettingsError(
            f"Cannot read the prompts from {path}: {exc.strerror or exc}.", "Give a UTF-8 text file."
        ) from exc


def agree(recipe: Recipe, path: Path) -> None:
    """Compare the recipe of a run with the one that an unfinished run has left.

    Args:
        path: of the kept recipe, which need not exist.

    Raises:
        SettingsError: a setting differs, and not only when to stop.
        RunError: the kept recipe cannot be read, for example because another version of specviz wrote it.
    """
    if not path.exists():
        return
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Recipe)
    except (OSError, msgspec.MsgspecError, SettingsError) as exc:
        raise RunError(
            f"The unfinished run in {path.parent} cannot be continued: {path.name} cannot be read: {exc}",
            f"Remove {path.parent} to start again.",
        ) from exc
    for field in fields(Recipe):
        ours, theirs = getattr(recipe, field.name), getattr(kept, field.name)
        if field.name in _MAY_CHANGE or ours == theirs:
            continue
        change = f"{_option(field.name)} is {_word(ours)} now, and was {_word(theirs)} there."
        if field.name == "prompts_sha256":
            change = "The file of --prompts has other contents now."
        raise SettingsError(
            f"{path.parent.parent} holds an unfinished run with other settings. {change}",
            f"Give the same settings to continue it, give another --out, or remove {path.parent} to start again.",
        )


def keep(recipe: Recipe, path: Path) -> None:
    """Write a recipe for `agree`.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(path, msgspec.json.format(msgspec.json.encode(recipe), indent=2) + b"\n")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _word(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
