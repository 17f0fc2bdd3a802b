"""Compare the draft with the target's own draws: a draft token is accepted if the target drew the same token.

Two ways of verifying use this rule. It is exact at any setting and needs no probabilities, because the target drew
every emitted token itself, given exactly the tokens before it. The expected acceptance is Σ p·q; that of rejection
sampling is Σ min(p, q).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from specviz.core.errors import AnswerError, LackingError
from specviz.core.guarantee import Guarantee
from specviz.core.ports import Tokenizer
from specviz.core.rounds import Candidate, Decision, Verdict
from specviz.targets.completions.reading.texts import token_of, written
from specviz.targets.completions.values import Choice, Findings, ScoredToken
from specviz.targets.completions.ways.shown import Lens

#: Finish reasons of servers for a text that the model ended itself.
ENDINGS = ("stop", "eos", "eos_token", "stop_token", "end_turn")


@dataclass(frozen=True, slots=True)
class Draw:
    """A token that the target drew, and the row of its position if the server gave one."""

    token_id: int
    row: ScoredToken | None = None


@dataclass(frozen=True, slots=True)
class Judged(Verdict):
    """A verdict, and what the next round needs to know.

    Attributes:
        owed: tokens that the target has drawn after the emitted ones and that must not be drawn again.
        prompt_tokens: length of the prompt in tokens of the server; None where the server does not count them.
        drawn: how many tokens of the server the emitted and owed tokens are; None where that is not known.
    """

    owed: tuple[int, ...] = field(default=())
    prompt_tokens: int | None = None
    drawn: int | None = None


@dataclass(frozen=True, slots=True)
class DrawnBlock:
    """Decisions of a round, the ids that it emits, and the ids that are owed after them."""

    decisions: tuple[Decision, ...]
    token_ids: tuple[int, ...]
    owed: tuple[int, ...] = ()

    def judged(self, guarantee: Guarantee, rule_ms: float) -> Judged:
        """As a verdict without any cost of calls."""
        return Judged(self.decisions, self.token_ids, guarantee, None, rule_ms, owed=self.owed)


def compare(own: Sequence[Draw], candidate: Candidate, lens: Lens) -> DrawnBlock:
    """Compare draft and draws position by position.

    Args:
        own: (n,) draws of the target; at most K+1, fewer where the target ended its text.

    Returns:
        Accepted tokens, then a correction (and the rest ignored) or a bonus. Where there are fewer draws, neither: the
        rest of the draft is ignored.
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
    """Whether the model ended its text itself."""
    return choice.finish_reason in ENDINGS


def draws_of(
    choice: Choice, likely: Sequence[int], findings: Findings, tokenizer: Tokenizer, vocab_size: int
) -> list[Draw] | None:
    """The tokens of a continuation; None where only its text is known.

    Args:
        likely: the draft tokens at these positions. A piece with exactly the text of its draft token gets that id.

    Raises:
        LackingError: the ids are missing, although the probe found that this server gives them.
    """
    ids = choice.token_ids
    if ids is None:
        if findings.ids_out and choice.text:
            raise LackingError("The answer lacks the ids of the generated tokens.", "Test the target: specviz doctor.")
        return _by_text(choice, likely, tokenizer, vocab_size)
    rows = choice.rows if len(choice.rows) == len(ids) else (None,) * len(ids)
    return [Draw(i, row) for i, row in zip(ids, rows, strict=True)]


def check_written(choice: Choice) -> None:
    """Check that a continuation is not empty.

    Raises:
        AnswerError: it is empty, and the model did not end its text either.
    """
    if not choice.text and not choice.token_ids and not ended(choice):
        raise AnswerError(
            "The server wrote nothing, and does not report the end of its text either.",
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
    """The texts of the tokens; None unless together they are the text, or the text and a stop token after it."""
    texts = tuple(row.text for row in choice.rows)
    whole = "".join(texts) == choice.text or (ended(choice) and "".join(texts[:-1]) == choice.text)
    return texts if whole and all(texts) and "\ufffd" not in choice.text else None


def stop_id(context_ids: Sequence[int], draft_id: int | None, stop_ids: frozenset[int]) -> int:
    """The token that ended a text, where the server does not give it.

    It is the draft's token if that is a stop token. Otherwise it is the last stop token in the context, because chat
    templates end a turn with one.

    Raises:
        AnswerError: the tokenizer has no stop token.
    """
    if not stop_ids:
        raise AnswerError(
            "The server ended its text, but this tokenizer has no stop token.",
            "Name the target's own tokenizer with --tokenizer.",
        )
    if draft_id in stop_ids:
        return draft_id
    return next((i for i in reversed(context_ids) if i in stop_ids), min(stop_ids))
