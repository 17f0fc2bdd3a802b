"""A server, what it was found to be able to, and the tokenizer that reads it: what every way asks with."""

from __future__ import annotations

from dataclasses import dataclass

from specviz.core.ports import Tokenizer
from specviz.core.settings import Sampling
from specviz.targets.completions.values import Completions, Findings
from specviz.targets.completions.ways.shown import Lens


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """What a way of verifying needs besides the round.

    Attributes:
        api: sends requests. findings: what the server can do.
        tokenizer: the target's own, or one that writes the same text (`Findings.same_tokens`).
        vocab_size: ids at or beyond it are never sent, and refused in an answer.
        stop_ids: tokens that end a text, for servers that leave theirs out.
    """

    api: Completions
    findings: Findings
    tokenizer: Tokenizer
    vocab_size: int
    stop_ids: frozenset[int] = frozenset()

    def lens(self, sampling: Sampling) -> Lens:
        """How to read rows that were drawn at these settings."""
        return Lens.of(self.findings, sampling, self.vocab_size, self.tokenizer)
