"""A server with its abilities and its tokenizer: what every way of verifying works with."""

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
        tokenizer: the target's own, or another one where `Findings.same_tokens` is false.
        vocab_size: ids at or above it are not sent, and an answer that contains one is an error.
        stop_ids: tokens that end a text, for servers that leave the stop token out of their answers.
    """

    api: Completions
    findings: Findings
    tokenizer: Tokenizer
    vocab_size: int
    stop_ids: frozenset[int] = frozenset()

    def lens(self, sampling: Sampling) -> Lens:
        """How to read the rows of tokens that were drawn at these settings."""
        return Lens.of(self.findings, sampling, self.vocab_size, self.tokenizer)
