"""The words of prompts and of the model card: the files in `data`, each read when it is first needed.

An item of `topics.json` is written as it stands inside a sentence, so in lower case unless it is a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TypeVar

import msgspec

T = TypeVar("T")
Lists = Mapping[str, tuple[str, ...]]


@cache
def templates() -> Lists:
    """Phrasings by domain. A word in braces is replaced by an item of the topic of that name."""
    return _decoded("templates.json", dict[str, tuple[str, ...]])


@cache
def limits() -> Lists:
    """By domain, wishes that now and then follow a prompt, such as "Keep it short."."""
    return _decoded("limits.json", dict[str, tuple[str, ...]])


@cache
def topics() -> Lists:
    """What the training prompts are about: lists of items by name."""
    found = _decoded("topics.json", dict[str, tuple[str, ...]])
    return found | {"thing": tuple(item.partition(":")[0] for item in found["object"])}


@cache
def passages() -> tuple[str, ...]:
    """Short texts to summarise or to correct."""
    return _decoded("passages.json", tuple[str, ...])


@cache
def faults() -> Mapping[str, Mapping[str, str]]:
    """Words and what people write in their place: `confused`, `disagreeing` and `misspelt`."""
    return _decoded("faults.json", dict[str, dict[str, str]])


@cache
def held_out_pairs() -> tuple[tuple[str, str], ...]:
    """Domain and text of the prompts to measure with: eight of each domain."""
    decoder = msgspec.json.Decoder(dict[str, str])
    return tuple((row["domain"], row["prompt"]) for row in decoder.decode_lines(_read("held_out.jsonl")))


def card_template() -> str:
    """The model card of a draft, with fields in braces: see `specviz.distill.card`."""
    return _read("card.md").decode()


def _decoded(name: str, kind: type[T]) -> T:
    return msgspec.json.decode(_read(name), type=kind)


def _read(name: str) -> bytes:
    return files(__package__).joinpath("data", name).read_bytes()
