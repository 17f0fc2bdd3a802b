"""Where prompts come from: specviz's own, a file, or made-up words for the toy."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from specviz.core.errors import PromptError
from specviz.core.settings import is_text
from specviz.distill.prompts import DOMAINS, Prompt, fix_prompt, summarise_prompt, training_prompts
from specviz.engines.toy import ToyTokenizer

#: Prompts per domain before they are drawn anew, with another seed.
_ROUND = 200
#: Of the prompts that bring a text along, how many bring one that the target wrote.
_OWN_ANSWERS = 0.6
_ON_TEXT: dict[str, Callable[[str, random.Random], Prompt]] = {"summarise": summarise_prompt, "fix": fix_prompt}
_ANSWER_LENGTHS = range(120, 1500)
_CHARACTERS_MAX = 20_000
_FILE_DOMAIN = "file"


class Source(Protocol):
    """Gives prompts without end."""

    def prompts(self, first: int, count: int, answers: Sequence[str]) -> list[Prompt]:
        """Prompts `first` to `first + count`, the same at every call.

        Args:
            answers: texts that the target has written by then, to be worked on.
        """
        ...


class OwnPrompts:
    """The ten domains, mixed."""

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
    """The same prompts over and over, each round in another order."""

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
    """A few words of the toy's vocabulary."""

    def __init__(self, seed: int) -> None:
        tokenizer = ToyTokenizer()
        self._seed = seed
        self._words = [tokenizer.token_name(i) for i in range(tokenizer.first_half_id)]

    def prompts(self, first: int, count: int, answers: Sequence[str]) -> list[Prompt]:
        """See `Source`."""
        rngs = (random.Random(f"{self._seed} {i}") for i in range(first, first + count))
        return [Prompt("toy", "".join(rng.choices(self._words, k=3))) for rng in rngs]


def read_prompts(path: Path) -> list[Prompt]:
    """Prompts of a file: one a line, or JSON lines with a "prompt" and perhaps a "domain". Empty lines are left out.

    Raises:
        PromptError: the file cannot be read, has no prompt, or a line is bad: it is named with its number.
    """
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as exc:
        raise PromptError(
            f"Cannot read the prompts from {path}: {exc.strerror or exc}.", "Give a UTF-8 text file."
        ) from exc
    filled = [(number, line.rstrip(b"\r")) for number, line in enumerate(lines, 1) if line.strip()]
    if not filled:
        raise PromptError(f"{path} holds no prompt.", "Write one prompt a line.")
    as_json = path.suffix.lower() in (".jsonl", ".ndjson") or _is_object(filled[0][1])
    read = _json_prompt if as_json else _text_prompt
    prompts = []
    for number, line in filled:
        try:
            prompts.append(read(line))
        except ValueError as exc:
            raise PromptError(f"Line {number} of {path} {exc}.", "Mend the line, or leave it out.") from exc
    return prompts


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _text_prompt(line: bytes) -> Prompt:
    try:
        return _checked(_FILE_DOMAIN, line.decode())
    except UnicodeDecodeError as exc:
        raise ValueError(f"is not UTF-8: byte {exc.start + 1} is 0x{line[exc.start]:02x}") from exc


def _json_prompt(line: bytes) -> Prompt:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"is no JSON object: {exc}") from exc
    if not isinstance(found, dict) or not isinstance(found.get("prompt"), str):
        raise ValueError('is no JSON object with a "prompt" that is a text')
    domain = found.get("domain", _FILE_DOMAIN)
    if not isinstance(domain, str) or not domain.strip() or len(domain) > 40 or not is_text(domain):
        raise ValueError(f'has a "domain" that is no name: {str(domain)[:40]!r}')
    return _checked(domain.strip(), found["prompt"])


def _checked(domain: str, text: str) -> Prompt:
    text = text.strip()
    if not text:
        raise ValueError("holds an empty prompt")
    if not is_text(text) or "\0" in text:
        raise ValueError("holds a prompt that is not valid text")
    if len(text) > _CHARACTERS_MAX:
        raise ValueError(f"holds a prompt of {len(text):,} characters; {_CHARACTERS_MAX:,} are the most")
    return Prompt(domain, text)
