"""Tokens with their log-probabilities, of every shape.

Every shape becomes `AnswerRows`: columns of equal length, with ids where the server gives them. Alternatives are read
late and only where they are needed, since an echo brings a row for every token of the context.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specviz.targets.completions.reading.shapes import (
    LOGPROB_SLACK,
    SUM_SLACK,
    Alternatives,
    ContentRow,
    DecodedToken,
    LogprobsJson,
    Triple,
    lacking,
    refuse,
    shaped,
)
from specviz.targets.completions.values import Likely, ScoredToken

_ID_PREFIX = "token_id:"
_REPLACEMENT = "\ufffd"
#: Servers write "impossible" as a large number, since JSON has no -inf: vLLM -9999.0, llama-server -3.4e38.
_IMPOSSIBLE = -9999.0
#: How far two values of one log-probability may be apart.
_AGREE = 1e-2
#: What may be missing from 1 in a list of all tokens.
_REST = 1e-5


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """Columns, one entry per token.

    Attributes:
        ids: None where the server gives none. texts: "" where it gives an id in place of a text.
        logprobs: None where the server gives none.
        tops: the alternatives as they are in the JSON, not read yet.
    """

    ids: tuple[int | None, ...] = ()
    texts: tuple[str, ...] = ()
    logprobs: tuple[float | None, ...] = ()
    tops: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, end: int | None = None) -> AnswerRows:
        """A slice of every column."""
        at = slice(start, end)
        return AnswerRows(self.ids[at], self.texts[at], self.logprobs[at], self.tops[at])

    def known_ids(self) -> tuple[int, ...] | None:
        """All ids; None where one is missing."""
        known = tuple(i for i in self.ids if i is not None)
        return known if len(known) == len(self.ids) else None

    def read(self, top: int, first_may_be_empty: bool = False) -> tuple[ScoredToken, ...]:
        """Every row with its numbers.

        Args:
            top: how many of the most probable tokens were requested.
            first_may_be_empty: the first row is that of a prompt's first token, which has no log-probability.

        Raises:
            AnswerError: no number where one must be, or a row that cannot be a distribution.
        """
        columns = zip(self.ids, self.texts, self.logprobs, self.tops, strict=True)
        return tuple(
            ScoredToken(i, word, None)
            if at == 0 and first_may_be_empty and value is None
            else _scored(i, word, value, best, top)
            for at, (i, word, value, best) in enumerate(columns)
        )


# The shapes.


def from_logprobs(block: LogprobsJson | None) -> AnswerRows:
    """The rows of a choice of the completions API."""
    if block is None:
        lacking("log-probabilities")
    if block.content is not None:
        return from_content(block.content)
    words, values = block.tokens, block.token_logprobs
    if words is None or values is None:
        refuse("its log-probabilities have no shape that is known")
    tops = [None] * len(words) if block.top_logprobs is None else block.top_logprobs
    if not len(words) == len(values) == len(tops):
        lacking(f"{len(words)} tokens, {len(values)} log-probabilities, {len(tops)} lists of alternatives")
    ids: Sequence[int | None] = [_id_in(word) for word in words] if block.token_ids is None else block.token_ids
    if len(ids) != len(words):
        lacking(f"{len(words)} tokens and {len(ids)} ids")
    texts = tuple("" if word.startswith(_ID_PREFIX) else word for word in words)
    return AnswerRows(tuple(ids), texts, tuple(values), tuple(tops))


def from_content(content: list[ContentRow]) -> AnswerRows:
    """The chat shape."""
    return AnswerRows(
        tuple(row.known_id for row in content),
        tuple(row.text for row in content),
        tuple(row.logprob for row in content),
        tuple(row.top_logprobs for row in content),
    )


def from_triples(given: list[Triple] | None, tops: list[Any] | None) -> AnswerRows:
    """SGLang's own shape."""
    if given is None:
        lacking("log-probabilities")
    best = [None] * len(given) if tops is None else tops
    if len(best) != len(given):
        lacking(f"{len(given)} log-probabilities and {len(best)} lists of alternatives")
    return AnswerRows(
        tuple(own for _, own, _ in given), tuple(word or "" for _, _, word in given),
        tuple(value for value, _, _ in given), tuple(best),
    )  # fmt: skip


def _id_in(word: str) -> int | None:
    """The id in a token that is written as `token_id:N`; None for a text."""
    digits = word.removeprefix(_ID_PREFIX)
    return None if digits == word else _number_in(digits)


def _number_in(digits: str) -> int | None:
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 10 else None


# One row.


def _scored(own: int | None, word: str, value: float | None, best: Any, top: int) -> ScoredToken:
    if value == 0 and top and best == []:
        # A token that llama-server drafted and kept by itself: it gives such a token no probability, and writes 0.
        return ScoredToken(own, word, None)
    at = _logprob(value)
    return ScoredToken(own, word, at, _top(Likely(own, word, at), best, top))


def _logprob(value: float | None) -> float:
    if value is None:
        refuse("a log-probability must be a number, not null")
    return -math.inf if value <= _IMPOSSIBLE else min(value, 0.0)


def _top(own: Likely, best: Any, top: int) -> tuple[Likely, ...]:
    """The most probable tokens of a row, best first: every token that is not in it is less probable than its last.

    Raises:
        AnswerError: a token stands twice, the probabilities sum above 1, or the row contradicts its own token.
    """
    given: Alternatives = shaped(best, Alternatives)  # type: ignore[arg-type]
    if given is None:
        return ()
    by_name = isinstance(given, dict)
    found = [_named(*one) for one in given.items()] if isinstance(given, dict) else [_unnamed(one) for one in given]
    # Among equals the own token goes last where it was added; else the lowest id goes first.
    added = len(found) > top
    listed = sorted(found, key=lambda t: (-t.logprob, added and _same(t, own), t.token_id or 0))
    _check_sum(listed, own)
    if all(likely.token_id is not None for likely in listed):
        if own.token_id is None:
            return tuple(listed[:top])
        _check_ids(listed, own)
        return tuple(_without_own_tail(listed, own, top))
    # A dict by text has one entry for all tokens that are written alike, and the more probable one may be missing.
    if by_name:
        return () if _collided(listed, own, top) else tuple(_without_own_tail(listed, own, top))
    return tuple(listed[: _unclear_at(listed)][:top])


def _named(name: str, value: float | DecodedToken) -> Likely:
    """Of a dict: by text or `token_id:N` with a number, or by id with an object."""
    if isinstance(value, DecodedToken):
        return Likely(_number_in(name), value.decoded_token or "", _logprob(value.logprob))
    own = _id_in(name)
    return Likely(own, name if own is None else "", _logprob(value))


def _unnamed(one: ContentRow | Triple) -> Likely:
    if isinstance(one, ContentRow):
        return Likely(one.known_id, one.text, _logprob(one.logprob))
    value, own, word = one
    return Likely(own, word or "", _logprob(value))


def _check_sum(listed: Sequence[Likely], own: Likely) -> None:
    inside = own.token_id is None or any(likely.token_id in (own.token_id, None) for likely in listed)
    total = math.fsum(math.exp(likely.logprob) for likely in listed) + (0.0 if inside else math.exp(own.logprob))
    if total > 1 + SUM_SLACK:
        refuse(f"the probabilities of one position sum to {total:.4g}")


def _check_ids(listed: Sequence[Likely], own: Likely) -> None:
    known = {likely.token_id: likely.logprob for likely in listed}
    if len(known) != len(listed):
        refuse("a token stands twice among the most probable ones of a position")
    beside = known.get(own.token_id)
    if beside is not None and not _close(beside, own.logprob):
        refuse(f"one token has the log-probabilities {own.logprob:g} and {beside:g} in one row")
    if beside is None and listed and own.logprob > listed[-1].logprob + _AGREE:
        refuse("a token that is missing among the most probable ones is more probable than the last of them")


def _close(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= max(_AGREE, LOGPROB_SLACK * abs(one))


def _without_own_tail(listed: list[Likely], own: Likely, top: int) -> list[Likely]:
    """The most probable ones without the row's own token where that was added to them.

    Servers add the own token, however improbable, and tokens between it and the others may be missing. Where at least
    as many came as were requested, the cut at that number removes it. Which ones are kept may not depend on the own
    token, so the last one is removed for being it only where a server gave fewer.
    """
    kept = listed[:top]
    fewer = 1 < len(listed) < top and not _complete(listed)
    return kept[:-1] if fewer and _same(kept[-1], own) else kept


def _complete(listed: Sequence[Likely]) -> bool:
    """Whether these are all tokens that there are."""
    return math.fsum(math.exp(likely.logprob) for likely in listed) > 1 - _REST


def _same(likely: Likely, own: Likely) -> bool:
    return likely.token_id == own.token_id if own.token_id is not None else likely.text == own.text


def _collided(listed: Sequence[Likely], own: Likely, top: int) -> bool:
    """Whether tokens may share a text: fewer came than requested, parts of characters, or another value of the own."""
    beside = next((likely.logprob for likely in listed if likely.text == own.text), own.logprob)
    fewer = len(listed) < top and not _complete(listed)
    return fewer or _unclear_at(listed) < len(listed) or not _close(beside, own.logprob)


def _unclear_at(listed: Sequence[Likely]) -> int:
    """The index of the first one that its text does not identify; their number where there is none."""
    seen: dict[str, int] = {}
    for likely in listed:
        seen[likely.text] = seen.get(likely.text, 0) + 1
    for at, likely in enumerate(listed):
        if likely.token_id is None and (not likely.text or _REPLACEMENT in likely.text or seen[likely.text] > 1):
            return at
    return len(listed)
