"""What makes a draft: everything that a run must agree on with the one that it goes on from."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from specviz.core.errors import RunError, SettingsError
from specviz.core.files import sha256_of, write_whole
from specviz.distill.student import BITS

#: May differ from those of the unfinished run: when to stop, and where the prompts lie, as long as they are the same.
_MAY_CHANGE = ("minutes", "prompts")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The settings of a distillation.

    Attributes:
        target: see `specviz.distill.subject.target_name`.
        minutes: for all of it.
        layers: of the target, to begin with; None for the first ones and the last.
        vocab: tokens of the draft, at most.
        bits: of the finished weights.
        seed: of every random draw.
        prompts: path of a file with prompts; empty for specviz's own. prompts_sha256: of its contents.
        max_tokens: of one text.
        tokens: texts are written until there are so many tokens; None for as many as a share of the time allows.
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
            SettingsError: naming the rule and the value.
        """
        _between("--minutes", self.minutes, 0.05, 100_000)
        _between("--vocab", self.vocab, 16, 1_000_000)
        _between("--seed", self.seed, 0, 2**31 - 1)
        _between("--max-tokens", self.max_tokens, 4, 512)
        _between("--batch-tokens", self.batch_tokens, 16, 1_000_000)
        for name, value in (("--tokens", self.tokens), ("--steps", self.steps)):
            if value is not None:
                _between(name, value, 1, 10**12)
        if self.learning_rate is not None:
            _between("--learning-rate", self.learning_rate, 1e-7, 1)
        if self.bits not in BITS:
            raise SettingsError(f"--bits must be one of {', '.join(map(str, BITS))}, not {self.bits}.")

    def command(self) -> str:
        """The command line that makes such a draft, with the folder left open."""
        words = [
            "python",
            "-m",
            "specviz",
            "distill",
            "--target",
            self.target.removeprefix("local:"),
            "--out",
            "FOLDER",
        ]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("target", "prompts_sha256") or value in (None, field.default):
                continue
            text = (
                ",".join(map(str, value))
                if isinstance(value, tuple)
                else f"{value:g}"
                if isinstance(value, float)
                else str(value)
            )
            words += [f"--{field.name.replace('_', '-')}", text]
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
    """Compare the recipe of a run with the one that is kept.

    Args:
        path: of the kept recipe; where there is none, all is well.

    Raises:
        SettingsError: another setting differs than when to stop.
        RunError: what is kept cannot be read.
    """
    theirs = _read(path) if path.exists() else None
    for name, mine in _plain(recipe).items():
        if theirs is None or name in _MAY_CHANGE or mine == theirs.get(name):
            continue
        change = f"--{name.replace('_', '-')} is {_word(mine)} now, and was {_word(theirs.get(name))} there."
        if name == "prompts_sha256":
            change = "The file of --prompts has other contents now."
        raise SettingsError(
            f"{path.parent.parent} holds an unfinished run with other settings. {change}",
            f"Give the same settings to go on, another --out to begin anew, or remove {path.parent}.",
        )


def keep(recipe: Recipe, path: Path) -> None:
    """Write a recipe, for `agree`.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(path, json.dumps(_plain(recipe), indent=2, ensure_ascii=False) + "\n")


def _plain(recipe: Recipe) -> dict[str, Any]:
    """As JSON has it: lists for tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(recipe)))
    return plain


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("no JSON object")
    except (OSError, ValueError, RecursionError) as exc:
        raise RunError(f"{path} cannot be read: {exc}.", f"Remove {path.parent} to begin anew.") from exc
    return found


def _word(value: Any) -> str:
    if value is None:
        return "not given"
    return ",".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def _between(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # nan is not either
        raise SettingsError(f"{name} must be from {low:g} to {high:g}, not {value!r}.")
