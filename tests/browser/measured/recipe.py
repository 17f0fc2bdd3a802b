"""What a measured run is to be like, as the words of a prompt: so the measured page needs no control of its own.

fed rate=60 tokens=2000        scripted rounds, at 60 tokens per second
model target=toy | Hello       a real model, asked "Hello"
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

import msgspec

from specviz.ui.run_view import CHARTS_POLL_S, TREE_POLL_S


@dataclass(frozen=True)
class Recipe:
    """Attributes:
    kind: fed: rounds come from a script, at a rate. model: a real host decodes.
    rate: emitted tokens per second. tokens: of the whole output. preload: nodes that are there from the start.
    k: drafted per round. kept: share of tested drafts that are kept.
    hostile: tokens that try to break the page come first.
    tree_s, charts_s: seconds between polls.
    prompt: what a model is asked.
    """

    kind: Literal["fed", "model"]
    rate: float = 60.0
    tokens: int = 128
    preload: int = 0
    seed: int = 1
    k: int = 4
    kept: float = 0.7
    hostile: bool = False
    tree_s: float = TREE_POLL_S
    charts_s: float = CHARTS_POLL_S
    target: str = "toy"
    draft: str = "toy"
    temperature: float = 0.0
    prompt: str = "Hello"

    @classmethod
    def of(cls, prompt: str) -> Recipe:
        words, _, rest = prompt.partition("|")
        kind, *pairs = words.split()
        given = {"kind": kind} | dict(pair.split("=") for pair in pairs)
        if rest.strip():
            given["prompt"] = rest.strip()
        return msgspec.convert(given, cls, strict=False)

    def __str__(self) -> str:
        changed = {f.name: getattr(self, f.name) for f in fields(self)[1:-1] if getattr(self, f.name) != f.default}
        return " ".join([self.kind, *(f"{name}={value}" for name, value in changed.items()), "|", self.prompt])
