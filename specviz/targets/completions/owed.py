"""Tokens that the target has drawn and a round could not emit yet.

A piece of the target's text may be several tokens of our vocabulary, and a prompt that goes out as text may not end
inside a character. What stands behind a round's last token then is owed: the next rounds are judged against it first,
and the server is asked only for what comes behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specviz.core.ports import Candidate
from specviz.targets.completions.ways.draws import Draw, DrawnBlock, compare
from specviz.targets.completions.ways.shown import Lens


@dataclass(frozen=True, slots=True)
class Owed:
    """What is owed behind one context. Another context owes nothing."""

    context_ids: tuple[int, ...] = ()
    token_ids: tuple[int, ...] = ()

    def behind(self, context_ids: Sequence[int]) -> tuple[int, ...]:
        """The ids that are owed behind this context."""
        return self.token_ids if self.token_ids and tuple(context_ids) == self.context_ids else ()


def settle(owed: tuple[int, ...], candidate: Candidate, lens: Lens) -> tuple[DrawnBlock, Candidate | None]:
    """Judge a draft against what is owed.

    Returns:
        The decisions so far, and what is left of the draft for the server to judge behind all that is owed; None where
        the round is over.
    """
    block = compare([Draw(i) for i in owed], candidate, lens)
    kept = len(block.token_ids)
    over = any(d.status in ("rejected", "bonus") for d in block.decisions)
    if over or kept < len(owed):
        return DrawnBlock(block.decisions, block.token_ids, owed[kept:]), None
    reached = tuple(d for d in block.decisions if d.status != "ignored")
    return DrawnBlock(reached, block.token_ids), candidate.behind(kept)
