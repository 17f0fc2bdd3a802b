"""Drafting of one block, token by token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specviz.core.events import Alternative
from specviz.core.ports import Step
from specviz.core.rounds import Candidate, Draft, Drawn
from specviz.core.sampling import Row


@dataclass(frozen=True, slots=True)
class Drafted:
    """One draft token and what is recorded about it: see `specviz.core.rounds.Candidate`.

    Attributes:
        confidence: the drafter's estimate of the probability that the target keeps the token if it is tested.
        copied: whether it was copied from the context, not drawn.
    """

    token_id: int
    q: Row
    confidence: float
    time_ms: float
    logprob: float | None = None
    entropy: float | None = None
    alternatives: tuple[Alternative, ...] = ()
    copied: bool = False

    @classmethod
    def copy(cls, token_id: int, time_ms: float, confidence: float = 1.0) -> Drafted:
        """A token that was chosen, not drawn: its q is one-hot at any temperature."""
        return cls(token_id, Row.one_hot(token_id), confidence, time_ms, copied=True)


DraftNext = Callable[[Sequence[int], float | None], Drafted | None]


def grow(
    context_ids: Sequence[int],
    k: int,
    stop_ids: frozenset[int],
    draft_next: DraftNext,
    text: Sequence[int] | None = None,
) -> list[Drafted]:
    """Draft token by token: at most k, up to the first stop token, or until `draft_next` returns None.

    Args:
        draft_next: takes the context with the draft so far, and the estimated probability that all of the draft is kept
            (None for the first token); returns None to end the block.
        text: an existing text that starts with `context_ids`. If given, its tokens replace the drafted ones in the
            context, and the block ends at its end.
    """
    ids, block = list(context_ids), list[Drafted]()
    reached: float | None = None
    while len(block) < k and (text is None or len(ids) < len(text)):
        drafted = draft_next(ids, reached)
        if drafted is None:
            break
        block.append(drafted)
        if drafted.token_id in stop_ids:
            break
        ids.append(drafted.token_id if text is None else text[len(ids)])
        reached = drafted.confidence * (1.0 if reached is None else reached)
    return block


def steps_of(block: Sequence[Drafted]) -> list[Step]:
    """The steps of a block that was drafted along a text: the q of each token, without the token."""
    return [Step(d.q, d.copied) for d in block]


def draft_of(drafter: str, block: Sequence[Drafted], note: str = "") -> Draft:
    """The finished draft of one candidate.

    Args:
        drafter: its name. note: see `specviz.core.rounds.Draft`.
    """
    if not block:
        return Draft(note=note)
    drawn: Drawn = "one_hot" if all(d.copied for d in block) else "iid"
    candidate = Candidate(
        token_ids=tuple(d.token_id for d in block),
        q=tuple(d.q for d in block),
        logprobs=tuple(d.logprob for d in block),
        entropies=tuple(d.entropy for d in block),
        alternatives=tuple(d.alternatives for d in block),
        times_ms=tuple(d.time_ms for d in block),
        drafter=drafter,
        drawn=drawn,
    )
    return Draft((candidate,), note)
