"""Where prompts come from: specviz itself, a file, or words of the toy's vocabulary."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Protocol

import msgspec

from specviz.core.errors import PromptError
from specviz.core.kinds import LINES
from specviz.core.reading import Wanted, json_of, read_text
from specviz.core.settings import is_text
from specviz.distill.prompts import DOMAINS, Prompt, fix_prompt, summarise_prompt, training_prompts
from specviz.engines.toy import ToyTokenizer

#: Prompts per domain before they are drawn anew, with another seed.
_ROUND = 200
#: Of the prompts that contain a text, the share that contain one that the target wrote.
_OWN_ANSWERS = 0.6
_ON_TEXT: dict[str, Callable[[str, random.Random], Prompt]] = {"summarise": summarise_prompt, "fix": fix_prompt}
_ANSWER_LENGTHS = range(120, 1500)
_CHARACTERS_MAX = 20_000


class Source(Protocol):
    """An endless list of prompts."""

    def prompts(self, first: int, count: int, answers: Sequence[str]) -> list[Prompt]:
        """Prompts `first` to `first + count`, the same at every call.

        Args:
            answers: texts that the target has written so far, for prompts that contain a text.
        """
        ...


class OwnPrompts:
    """Prompts of specviz in ten domains, mixed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._rounds: dict[int, list[Prompt]] = {}

    def prompts(self, first: int, count: int, answers: Sequence[str]) -> list[Prompt]:
        """See `Source`."""
        usable = [a for a in answers if len(a) in _ANSWER_LENGTHS]
        return [self._on_answer(self._prompt(i), i, usable) for i in range(first, first + count)]

    def _prompt(self, index: int) -> Prompt:
        number, at = divmod(index, _ROUND * len(DOMAINS))
        if number not in self._rounds:
            seed = self._seed * 1_000_003 + number
            found = training_prompts(_ROUND, seed)
            random.Random(seed).shuffle(found)
            self._rounds = {number: found}
        return self._rounds[number][at]

    def _on_answer(self, prompt: Prompt, index: int, answers: Sequence[str]) -> Prompt:
        rng = random.Random(f"{self._seed} {index}")
        make = _ON_TEXT.get(prompt.domain)
        if make is None or not answers or rng.random() >= _OWN_ANSWERS:
            return prompt
        return make(rng.choice(answers), rng)


class GivenPrompts:
    """The prompts of a file, repeated without end, each time in another order."""

    def __init__(self, given: Sequence[Prompt], seed: int) -> None:
        self._given, self._seed = list(given), seed

    def prompts(self, first: int, count: int, answers: Sequence[str]) -> list[Prompt]:
        """See `Source`."""
        return [self._prompt(i) for i in range(first, first + count)]

    def _prompt(self, index: int) -> Prompt:
        number, at = divmod(index, len(self._given))
        order = list(range(len(self._given)))
        random.Random(f"{self._seed} {number}").shuffle(order)
        return self._given[order[at]]


class ToyPrompts:
    """Prompts of three words of the toy's vocabulary."""

    def __init__(self, seed: int) -> None:
        tokenizer = ToyTokenizer()
        self._seed = seed
        self._words = [tokenizer.token_name(i) for i in range(tokenizer.first_half_id)]

    @classmethod
    def held_out(cls, seed: int, count: int) -> list[Prompt]:
        """Prompts to measure with: no training uses a negative seed."""
        return cls(-1 - seed).prompts(0, count, ())

    def prompts(self, first: int, count: int, answers: Sequence[str]) -> list[Prompt]:
        """See `Source`."""
        rngs = (random.Random(f"{self._seed} {i}") for i in range(first, first + count))
        return [Prompt("toy", "".join(rng.choices(self._words, k=3))) for rng in rngs]


_WANTED = Wanted(
    "a text file of prompts", PromptError, "Write one prompt a line, or JSON lines.", LINES, largest_bytes=256_000_000
)


class _FilePrompt(msgspec.Struct):
    """One line of a file with JSON lines; other fields are ignored."""

    prompt: str
    domain: Annotated[str, msgspec.Meta(pattern=r"\S", max_length=40)] = "file"


def read_prompts(path: Path) -> list[Prompt]:
    """Prompts of a file: one a line, or JSON lines with a "prompt" and perhaps a "domain". Empty lines are skipped.

    Raises:
        PromptError: the file cannot be read or has no prompt, or a line cannot be used; the message has its number.
    """
    lines = read_text(path, _WANTED).split("\n")
    filled = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()]
    if not filled:
        raise PromptError(f"{path} holds no prompt.", "Write one prompt a line.")
    as_json = path.suffix.lower() in (".jsonl", ".ndjson") or _is_object(filled[0][1])
    prompts = []
    for number, line in filled:
        try:
            entry = msgspec.convert(json_of(line), _FilePrompt) if as_json else _FilePrompt(line)
            prompts.append(_checked(entry))
        except ValueError as exc:  # what msgspec raises is a ValueError too
            raise PromptError(
                f"Line {number} of {path} cannot be used: {exc}.", "Correct it, or leave it out."
            ) from exc
    return prompts


def _is_object(line: str) -> bool:
    try:
        return isinstance(json_of(line), dict)
    except ValueError:
        return False


def _checked(entry: _FilePrompt) -> Prompt:
    text = entry.prompt.strip()
    if not text:
        raise ValueError("its prompt is empty")
    if not is_text(text + entry.domain) or "\0" in text:
        raise ValueError("it is not valid text")
    if len(text) > _CHARACTERS_MAX:
        raise ValueError(f"its prompt has {len(text):,} characters; at most {_CHARACTERS_MAX:,} are allowed")
    return Prompt(entry.domain.strip(), text)
