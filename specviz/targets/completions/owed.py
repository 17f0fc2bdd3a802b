"""Tokens that the target has drawn and that a round could not emit yet. They are called owed.

There are two causes. One token of the target can be several tokens of our vocabulary. And a prompt that is sent as text
must not end inside a character, so the target may have to draw more tokens than the round emits. The next rounds are
compared with the owed tokens first. The server is called only for what follows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specviz.core.rounds import Candidate
from specviz.targets.completions.ways.draws import Draw, DrawnBlock, compare
from specviz.targets.completions.ways.shown import Lens


@dataclass(frozen=True, slots=True)
class Owed:
    """The owed tokens after one context. After any other context there are none."""

    context_ids: tuple[int, ...] = ()
    token_ids: tuple[int, ...] = ()

    def behind(self, context_ids: Sequence[int]) -> tuple[int, ...]:
        """The ids that are owed after this context."""
        return self.token_ids if self.token_ids and tuple(context_ids) == self.context_ids else ()


def settle(owed: tuple[int, ...], candidate: Candidate, lens: Lens) -> tuple[DrawnBlock, Candidate | None]:
    """Compare a draft with the owed tokens.

    Returns:
        The decisions so far, and the rest of the draft, which the server is to verify after all owed tokens; None where
        the round is complete without a call.
    """
    block = compare([Draw(i) for i in owed], candidate, lens)
    kept = len(block.token_ids)
    over = any(d.status in ("rejected", "bonus") for d in block.decisions)
    if over or kept < len(owed):
        return DrawnBlock(block.decisions, block.token_ids, owed[kept:]), None
    reached = tuple(d for d in block.decisions if d.status != "ignored")
    return DrawnBlock(reached, block.token_ids), candidate.behind(kept)
