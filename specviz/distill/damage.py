"""Mistakes as people make them when they type, for prompts that ask for a correction, and for some others."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

from specviz.distill.texts import faults


def one_typo(text: str, rng: random.Random) -> str:
    """The text with one typing mistake, if the chosen word is long enough for it."""
    words = text.split(" ")
    index = rng.randrange(len(words))
    words[index] = rng.choice((_drop_letter, _double_letter, _swap_letters))(words[index], rng)
    return " ".join(words)


def damage(text: str, rng: random.Random) -> str:
    """The text with about one mistake in eight words.

    White space is kept. A text that no mistake applies to, such as a number, is returned as it is.
    """
    parts = re.split(r"(\s+)", text)
    start = 0
    while start < len(parts):
        window = range(start, min(start + 12, len(parts)), 2)
        _damage_one(parts, rng.sample(window, len(window)), rng)
        start += 2 * rng.randint(6, 10)
    return "".join(parts)


def _damage_one(parts: list[str], order: list[int], rng: random.Random) -> None:
    for fault in rng.sample(_FAULTS, len(_FAULTS)):
        for index in order:
            damaged = fault(parts[index], rng)
            if damaged != parts[index]:
                parts[index] = damaged
                return


# Each kind of mistake takes a word with its punctuation, and returns it as it is where it does not apply.


def _inner(word: str, rng: random.Random) -> int | None:
    """The index of a letter of a longer word that is neither its first nor its last."""
    places = [i for i in range(1, len(word) - 2) if word[i - 1 : i + 3].isalpha()]
    return rng.choice(places) if places else None


def _drop_letter(word: str, rng: random.Random) -> str:
    at = _inner(word, rng)
    return word if at is None else word[:at] + word[at + 1 :]


def _double_letter(word: str, rng: random.Random) -> str:
    at = _inner(word, rng)
    return word if at is None else word[:at] + word[at] + word[at:]


def _swap_letters(word: str, rng: random.Random) -> str:
    at = _inner(word, rng)
    return word if at is None else word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _drop_apostrophe(word: str, rng: random.Random) -> str:
    return re.sub(r"(?<=\w)['’](?=\w)", "", word)


def _lower_case(word: str, rng: random.Random) -> str:
    return word[:1].lower() + word[1:]


def _drop_punctuation(word: str, rng: random.Random) -> str:
    return word[:-1] if word[-1:] in (",", ".") and word[:-1].isalpha() else word


def _confuse(word: str, rng: random.Random) -> str:
    return _exchange(word, faults()["confused"])


def _disagree(word: str, rng: random.Random) -> str:
    return _exchange(word, faults()["disagreeing"])


def _misspell(word: str, rng: random.Random) -> str:
    return _exchange(word, faults()["misspelt"])


def _exchange(word: str, pairs: Mapping[str, str]) -> str:
    bare = word.strip(',.!?;:"()')
    other = pairs.get(bare.lower())
    if other is None:
        return word
    return word.replace(bare, other.capitalize() if bare[0].isupper() else other, 1)


_Fault = Callable[[str, random.Random], str]
_FAULTS: tuple[_Fault, ...] = (
    _drop_letter,
    _double_letter,
    _swap_letters,
    _drop_apostrophe,
    _lower_case,
    _drop_punctuation,
    _confuse,
    _disagree,
    _misspell,
)
