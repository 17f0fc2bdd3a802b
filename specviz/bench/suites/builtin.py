"""The texts of the suite that comes with specviz: eight of each domain, in different styles of writing.

They are for measurements only: no draft is trained on them, and no training prompt is among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec


class BuiltinText(msgspec.Struct, frozen=True):
    """One entry of `data/builtin.json`.

    Attributes:
        prompt: the prompt; `{text}` in it is replaced by the passage, if there is one.
        answer: what a right answer says; only the word problems of the domain maths have one.
        passage: a text to summarise, or one with four to eight mistakes to correct.
    """

    prompt: str
    answer: str = ""
    passage: str = ""

    @property
    def text(self) -> str:
        """The prompt with its passage."""
        return self.prompt.replace("{text}", self.passage) if self.passage else self.prompt


@cache
def builtin_texts() -> Mapping[str, tuple[BuiltinText, ...]]:
    """The texts by domain, read when they are first needed."""
    data = files(__package__).joinpath("data", "builtin.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, tuple[BuiltinText, ...]])
