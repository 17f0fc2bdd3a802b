"""A block while it is drafted, token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specviz.events import Alternative
from specviz.ports import Proposal
from specviz.sampling import Row


@dataclass(frozen=True, slots=True)
class Drafted:
    """One draft token and what is recorded about it: see `specviz.ports.Proposal`.

    Attributes:
        confidence: the chance that the target keeps it if it gets there, as the drafter estimates it.
    """

    token_id: int
    q: Row
    confidence: float
    time_ms: float
    logprob: float | None = None
    entropy: float | None = None
    alternatives: tuple[Alternative, ...] = ()

    @classmethod
    def copy(cls, token_id: int, time_ms: float, confidence: float = 1.0) -> Drafted:
        """A token that was chosen, not drawn: its q is one-hot at any temperature."""
        return cls(token_id, Row.one_hot(token_id), confidence, time_ms)


def proposal_of(block: Sequence[Drafted], note: str = "") -> Proposal:
    """The finished block."""
    return Proposal(
        token_ids=tuple(d.token_id for d in block),
        q=tuple(d.q for d in block),
        logprobs=tuple(d.logprob for d in block),
        entropies=tuple(d.entropy for d in block),
        alternatives=tuple(d.alternatives for d in block),
        times_ms=tuple(d.time_ms for d in block),
        note=note,
    )
