"""What a probe may conclude from answers. Pure functions of choices and rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from specviz.core.errors import AnswerError, RemoteError
from specviz.targets.completions.reading import answers
from specviz.targets.completions.values import Answer, Choice, Engine, Likely, Reply, Request, ScoredToken

#: How far two computations of one log-probability may be apart, in nats; quantised kernels differ by batch.
SAME = 0.15
#: How large a difference of log-probabilities must be, in nats, to show whether it changes with the temperature.
_CLEAR = 0.5
_LONGEST = 160
_REPLACEMENT = "\ufffd"


def readable(reply: Reply | RemoteError, request: Request, engine: Engine) -> Answer | None:
    """The answer; None where it cannot be used."""
    if not isinstance(reply, Reply):
        return None
    try:
        return answers.read(reply.body, request, engine)
    except AnswerError:
        return None


def reason(exc: RemoteError) -> str:
    """The message of an error, as a part of a sentence."""
    words = exc.message.removeprefix("The server's answer lacks what was requested: ").rstrip(".")
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def most_alternatives(answer: Answer, requested: int) -> int:
    """How many of the most probable tokens a position has, by their ids: at most as many as were requested."""
    rows = [row for choice in answer.choices for row in (*choice.rows, *choice.prompt)]
    named = [[t for t in row.top if t.token_id is not None] for row in rows]
    whole = any(math.fsum(math.exp(t.logprob) for t in top) > 0.9999 for top in named)
    return requested if whole else max(map(len, named), default=0)


def same_token(one: Choice, other: Choice) -> bool:
    """Whether both begin with the same token: by ids where there are some, else by text."""
    if one.token_ids and other.token_ids:
        return one.token_ids[0] == other.token_ids[0]
    return one.text == other.text


def is_tie(choice: Choice) -> bool:
    """Whether another token is as probable as the first one."""
    top = choice.rows[0].top if choice.rows else ()
    return len(top) > 1 and top[0].logprob - top[1].logprob < SAME


def belongs(row: ScoredToken, made: ScoredToken) -> bool:
    """Whether a row of the prompt is in its right place: its most probable token is what the server generates there.

    Args:
        row: a row with alternatives. made: the token that was generated at temperature 0 after the tokens before it.
    """
    found = next((t for t in row.top if _is(t, made)), None)
    if found is None or found.logprob < row.top[0].logprob - SAME:
        return False
    return made.logprob is None or abs(found.logprob - made.logprob) < SAME


def after_temperature(cold: Choice, hot: Choice, temperature: float) -> bool | None:
    """Whether log-probabilities changed with the temperature; None where that cannot be seen.

    Args:
        cold, hot: the same position at temperature 0 and at this temperature, perhaps with top-k 1.
    """
    if not cold.rows or not hot.rows:
        return None
    before, after = _by_token(cold.rows[0]), _by_token(hot.rows[0])
    both = [k for k in before if math.isfinite(before[k]) and math.isfinite(after.get(k, -math.inf))]
    best, worst = (max(both, key=before.__getitem__), min(both, key=before.__getitem__)) if both else ("", "")
    if both and (gap := before[best] - before[worst]) > _CLEAR:
        ratio = (after[best] - after[worst]) / gap
        return _nearest(ratio, temperature)
    return _of_one(cold.rows[0], hot.rows[0]) if same_token(cold, hot) else None


def _nearest(ratio: float, temperature: float) -> bool | None:
    """Before the temperature a difference stays the same; after it, it is divided by the temperature."""
    if abs(ratio - 1) < 0.1:
        return False
    return True if abs(ratio - 1 / temperature) < 0.1 else None


def _of_one(cold: ScoredToken, hot: ScoredToken) -> bool | None:
    """By the token's own log-probability: top-k 1 makes it 0 where log-probabilities are after sampling."""
    if cold.logprob is None or hot.logprob is None or cold.logprob > -_CLEAR:
        return None
    if abs(cold.logprob - hot.logprob) < SAME:
        return False
    return True if hot.logprob > -1e-3 else None


def likely_best(cold: Choice, temperature: float) -> float:
    """An upper bound of the most probable token's probability at a temperature above 1.

    The tail's Σ p^(1/T) is at least its mass to the power 1/T, since x^(1/T) is subadditive.
    """
    row = cold.rows[0] if cold.rows else None
    known = [t.logprob for t in row.top] if row is not None and row.top else []
    if not known and row is not None and row.logprob is not None:
        known = [row.logprob]
    if not known:
        return 0.5
    rest = max(0.0, 1 - math.fsum(map(math.exp, known)))
    powers = [math.exp(value / temperature) for value in known]
    return max(powers) / (math.fsum(powers) + math.pow(rest, 1 / temperature))


def reads_alike(ours: str | None, theirs: str) -> bool:
    """Whether the tokenizer and the server write a token alike.

    Args:
        ours: None where the tokenizer has no such token.
    """
    if ours is None:
        return not theirs
    # Special tokens and parts of characters are written in several ways.
    if not theirs or not ours or _REPLACEMENT in theirs + ours:
        return True
    return ours.strip() == theirs.strip() or ours.strip() == theirs.lstrip("Ġ▁")


def pairs(choices: Sequence[Choice], scored: Sequence[ScoredToken]) -> list[tuple[int, str]]:
    """Every id that came with a text, and the text."""
    found = [(c.token_ids[0], c.text) for c in choices if c.token_ids is not None and len(c.token_ids) == 1]
    rows = [*scored, *(row for choice in choices for row in choice.rows)]
    found += [(row.token_id, row.text) for row in rows if row.token_id is not None]
    found += [(t.token_id, t.text) for row in rows for t in row.top if t.token_id is not None]
    return [(i, word) for i, word in found if word]


def _is(likely: Likely, made: ScoredToken) -> bool:
    if likely.token_id is not None and made.token_id is not None:
        return likely.token_id == made.token_id
    return likely.text == made.text


def _by_token(row: ScoredToken) -> dict[int | str, float]:
    return {t.token_id if t.token_id is not None else t.text: t.logprob for t in row.top}
