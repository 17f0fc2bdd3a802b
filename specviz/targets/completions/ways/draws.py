"""Own draws compared: keep a draft token while it is the one that the target drew itself.

The rule behind two ways of verifying. It is exact at any setting and needs no probability: every token that is emitted
was drawn by the target, behind exactly the tokens before it. It accepts Σ p·q where rejection sampling accepts
Σ min(p, q).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from specviz.core.errors import AnswerError, LackingError
from specviz.core.events import Guarantee
from specviz.core.ports import Candidate, Decision, Tokenizer, Verdict
from specviz.targets.completions.reading.texts import token_of, written
from specviz.targets.completions.values import Choice, Findings, ScoredToken
from specviz.targets.completions.ways.shown import Lens

#: What servers say when a generation ended by itself.
ENDINGS = ("stop", "eos", "eos_token", "stop_token", "end_turn")


@dataclass(frozen=True, slots=True)
class Draw:
    """A token of the target's own, and what the server told about its position."""

    token_id: int
    row: ScoredToken | None = None


@dataclass(frozen=True, slots=True)
class Judged(Verdict):
    """A verdict, and what the next round has to know.

    Attributes:
        owed: tokens that the target has drawn behind the emitted ones and that may not be drawn again.
        prompt_tokens: how long the server counted the prompt, in its own tokens; None where it did not.
        drawn: how many of its own tokens stand in what is emitted and owed; None where that cannot be told.
    """

    owed: tuple[int, ...] = field(default=())
    prompt_tokens: int | None = None
    drawn: int | None = None


@dataclass(frozen=True, slots=True)
class DrawnBlock:
    """Decisions of a round, the ids it emits, and what is owed behind them."""

    decisions: tuple[Decision, ...]
    token_ids: tuple[int, ...]
    owed: tuple[int, ...] = ()

    def judged(self, guarantee: Guarantee, rule_ms: float) -> Judged:
        """As a verdict that has cost nothing yet."""
        return Judged(self.decisions, self.token_ids, guarantee, None, rule_ms, owed=self.owed)


def compare(own: Sequence[Draw], candidate: Candidate, lens: Lens) -> DrawnBlock:
    """Go through draft and own draws side by side.

    Args:
        own: (n,) draws, n ≥ 1; as many as there are before the target ended its text, K+1 at most.

    Returns:
        Accepted tokens, then a correction (and the rest ignored) or a bonus. Where the target's draws end first there
        is neither: what is left of the draft is ignored.
    """
    decisions: list[Decision] = []
    for x, q, draw in zip(candidate.token_ids, candidate.q, own, strict=False):
        same = draw.token_id == x
        decisions.append(
            Decision(
                status="accepted" if same else "rejected",
                draft_id=x,
                final_id=draw.token_id,
                p=lens.prob(draw.row, draw.token_id, x),
                q=q.prob(x),
                acceptance=lens.prob(draw.row, draw.token_id, x),
                draft_logprob_target=lens.logprob(draw.row, x),
                final_logprob=lens.logprob(draw.row, draw.token_id),
                alternatives=lens.alternatives(draw.row, draw.token_id),
            )
        )
        if not same:
            break
    judged = len(decisions)
    fully = judged == len(candidate.token_ids) and all(d.status == "accepted" for d in decisions)
    if fully and len(own) > judged:
        decisions.append(_bonus(own[judged], lens))
    decisions += [Decision(status="ignored", draft_id=x, final_id=None) for x in candidate.token_ids[judged:]]
    return DrawnBlock(tuple(decisions), tuple(d.final_id for d in decisions if d.final_id is not None))


def _bonus(draw: Draw, lens: Lens) -> Decision:
    logprob = lens.logprob(draw.row, draw.token_id)
    return Decision(
        status="bonus",
        draft_id=None,
        final_id=draw.token_id,
        p=lens.prob(draw.row, draw.token_id, draw.token_id),
        draft_logprob_target=logprob,
        final_logprob=logprob,
        alternatives=lens.alternatives(draw.row, draw.token_id),
    )


def ended(choice: Choice) -> bool:
    """Whether the target ended its text by itself."""
    return choice.finish_reason in ENDINGS


def draws_of(
    choice: Choice, likely: Sequence[int], findings: Findings, tokenizer: Tokenizer, vocab_size: int
) -> list[Draw] | None:
    """The tokens of a continuation one by one; None where only its text is known.

    Args:
        likely: what the draft has at these positions; where the target's token has exactly the same text, it is that.

    Raises:
        LackingError: the ids, which this server was found to give, are not there.
    """
    ids = choice.token_ids
    if ids is None:
        if findings.ids_out and choice.text:
            raise LackingError("The answer lacks the ids of what was generated.", "Test the target: specviz doctor.")
        return _by_text(choice, likely, tokenizer, vocab_size)
    rows = choice.rows if len(choice.rows) == len(ids) else (None,) * len(ids)
    return [Draw(i, row) for i, row in zip(ids, rows, strict=True)]


def check_written(choice: Choice) -> None:
    """Refuse a continuation of nothing.

    Raises:
        AnswerError: nothing was written, and the text does not end there either.
    """
    if not choice.text and not choice.token_ids and not ended(choice):
        raise AnswerError(
            "The server wrote nothing, and does not say that its text ends there.",
            "Try again, or test the target: specviz doctor.",
        )


def _by_text(choice: Choice, likely: Sequence[int], tokenizer: Tokenizer, vocab_size: int) -> list[Draw] | None:
    pieces = pieces_of(choice)
    if pieces is None:
        return None
    draws: list[Draw] = []
    for at, (piece, row) in enumerate(zip(pieces, choice.rows, strict=False)):
        data = piece.encode()
        expected = at < len(likely) and written(likely[at], tokenizer) == data
        found = likely[at] if expected else token_of(data, tokenizer, vocab_size)
        if found is None:
            return None
        draws.append(Draw(found, row))
    return draws


def pieces_of(choice: Choice) -> tuple[str, ...] | None:
    """The texts of its tokens, where they add up to the text; a stop token's own may stand behind it."""
    texts = tuple(row.text for row in choice.rows)
    whole = "".join(texts) == choice.text or (ended(choice) and "".join(texts[:-1]) == choice.text)
    return texts if whole and all(texts) and "\ufffd" not in choice.text else None


def stop_id(context_ids: Sequence[int], draft_id: int | None, stop_ids: frozenset[int]) -> int:
    """The token that ended a text, where the server does not say which.

    The draft's, if it proposed an end; else the one that the context last used, as chat templates end a turn with it.

    Raises:
        AnswerError: no token is known to end a text.
    """
    if not stop_ids:
        raise AnswerError(
            "The server ended its text, and this tokenizer has no token for that.",
            "Name the target's own tokenizer (--tokenizer).",
        )
    if draft_id in stop_ids:
        return draft_id
    return next((i for i in reversed(context_ids) if i in stop_ids), min(stop_ids))
