"""Tokens with their log-probabilities, in the shapes in which servers list them.

Every shape becomes `AnswerRows`: columns of equal length, with ids where the server gives them. What stands in a row
is read late and only where it is needed, since an echo brings a row for every token of the context.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from specviz.targets.completions.reading.checks import (
    LOGPROB_SLACK,
    SUM_SLACK,
    lacking,
    listing,
    logprob,
    mapping,
    refuse,
    text,
    token_id,
    token_ids,
)
from specviz.targets.completions.values import Likely, ScoredToken

_ID_PREFIX = "token_id:"
_REPLACEMENT = "\ufffd"
#: How far two statements of one log-probability may be apart.
_AGREE = 1e-2
#: What may be missing from 1 in a list of all tokens.
_REST = 1e-5


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """Columns, one entry per token.

    Attributes:
        ids: None where the server gives none. texts: "" where it gives an id in place of a text.
        logprobs, tops: as they stand in the JSON, not read yet; a top may be None.
    """

    ids: tuple[int | None, ...] = ()
    texts: tuple[str, ...] = ()
    logprobs: tuple[Any, ...] = ()
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

    def with_ids(self, ids: Sequence[int]) -> AnswerRows:
        """The same with ids that the server says elsewhere."""
        return replace(self, ids=tuple(ids))

    def read(self, top: int, vocab_size: int | None, first_may_be_empty: bool = False) -> tuple[ScoredToken, ...]:
        """Every row with its numbers.

        Args:
            top: how many of the most probable tokens were asked for.
            first_may_be_empty: the first row is that of a prompt's first token, which has no log-probability.

        Raises:
            AnswerError: null where a number must be, or a row that cannot be a distribution.
        """
        return tuple(
            ScoredToken(i, word, None)
            if at == 0 and first_may_be_empty and value is None
            else _scored(i, word, value, best, top, vocab_size)
            for at, (i, word, value, best) in enumerate(
                zip(self.ids, self.texts, self.logprobs, self.tops, strict=True)
            )
        )


class TopEntry(NamedTuple):
    """One of a row's most probable tokens, with the log-probability as it stands in the JSON."""

    token_id: int | None
    text: str
    logprob: Any


# The shapes.


def from_lists(block: Mapping[str, Any], vocab_size: int | None) -> AnswerRows:
    """The legacy shape: lists `tokens`, `token_logprobs`, `top_logprobs`; Fireworks and Together add `token_ids`."""
    words = [text(t, "a token") for t in listing(block.get("tokens"), "tokens")]
    values = listing(block.get("token_logprobs"), "token_logprobs")
    given = block.get("top_logprobs")
    tops = [None] * len(words) if given is None else listing(given, "top_logprobs")
    if not len(words) == len(values) == len(tops):
        lacking(f"{len(words)} tokens, {len(values)} log-probabilities, {len(tops)} lists of alternatives")
    ids: list[int | None] = [_id_of(word, vocab_size) for word in words]
    if block.get("token_ids") is not None:
        ids = list(token_ids(block["token_ids"], "token_ids", vocab_size))
        if len(ids) != len(words):
            lacking(f"{len(words)} tokens and {len(ids)} ids")
    texts = tuple("" if word.startswith(_ID_PREFIX) else word for word in words)
    return AnswerRows(tuple(ids), texts, tuple(values), tuple(tops))


def from_content(content: list[Any], vocab_size: int | None) -> AnswerRows:
    """The chat shape: a list of objects with `token`, `logprob`, `top_logprobs`, mostly `bytes`, sometimes an id."""
    rows = [mapping(row, "a row") for row in content]
    ids = tuple(_own_id(row, vocab_size) for row in rows)
    return AnswerRows(
        ids,
        tuple(_word(row) for row in rows),
        tuple(row.get("logprob") for row in rows),
        tuple(row.get("top_logprobs") for row in rows),
    )


def from_prompt_logprobs(given: list[Any], ids: Sequence[int], vocab_size: int | None) -> AnswerRows:
    """VLLM's prompt_logprobs: per prompt token an object by id, in which the token itself must stand.

    Args:
        ids: of the prompt.
    """
    if len(given) != len(ids):
        lacking(f"log-probabilities of {len(given)} prompt tokens out of {len(ids)}")
    texts, values = [], []
    for at, (i, row) in enumerate(zip(ids, given, strict=True)):
        own = None if row is None else mapping(row, "a row").get(str(i))
        if own is None and (at or row is not None):
            lacking(f"the log-probability of token {i} of the prompt")
        texts.append("" if own is None else _decoded(mapping(own, "an alternative")))
        values.append(None if own is None else own.get("logprob"))
    return AnswerRows(tuple(token_id(i, vocab_size) for i in ids), tuple(texts), tuple(values), tuple(given))


def from_triples(given: list[Any], tops: Any, vocab_size: int | None) -> AnswerRows:
    """SGLang's own shape: lists of [log-probability, id, text or null], and the most probable tokens likewise."""
    entries = [_triple(row) for row in given]
    best = [None] * len(entries) if tops is None else listing(tops, "top_logprobs")
    if len(best) != len(entries):
        lacking(f"{len(entries)} log-probabilities and {len(best)} lists of alternatives")
    return AnswerRows(
        tuple(token_id(e[1], vocab_size) for e in entries),
        tuple("" if e[2] is None else text(e[2], "a token") for e in entries),
        tuple(e[0] for e in entries),
        tuple(best),
    )


def _triple(row: Any) -> list[Any]:
    entry = listing(row, "a row")
    if len(entry) != 3:
        refuse(f"a row must be a log-probability, an id and a text, not {len(entry)} values")
    return entry


def _id_of(word: str, vocab_size: int | None) -> int | None:
    """The id in a token that is written as `token_id:N`; None for a text."""
    digits = word.removeprefix(_ID_PREFIX)
    if digits == word or not digits.isascii() or not digits.isdigit() or len(digits) > 10:
        return None
    return token_id(int(digits), vocab_size)


def _own_id(row: Mapping[str, Any], vocab_size: int | None) -> int | None:
    given = row.get("id", row.get("token_id"))
    return None if given is None else token_id(given, vocab_size)


def _word(row: Mapping[str, Any]) -> str:
    raw = row.get("bytes")
    if isinstance(raw, list) and all(type(b) is int and 0 <= b < 256 for b in raw):
        try:
            return bytes(raw).decode()
        except UnicodeDecodeError:
            pass  # a part of a character: the token, as the server writes it, says no less
    return text(row.get("token", ""), "a token")


def _decoded(entry: Mapping[str, Any]) -> str:
    word = entry.get("decoded_token")
    return "" if word is None else text(word, "a token")


# What stands in a row.


def _scored(own: int | None, word: str, value: Any, best: Any, top: int, vocab_size: int | None) -> ScoredToken:
    at = logprob(value)
    return ScoredToken(own, word, at, _top(Likely(own, word, at), best, top, vocab_size))


def _top(own: Likely, best: Any, top: int, vocab_size: int | None) -> tuple[Likely, ...]:
    """The most probable tokens of a row, best first: never with a hole, so that all others have less than the last.

    Raises:
        AnswerError: a token stands twice, the probabilities sum above 1, or the row contradicts its own token.
    """
    if best is None:
        return ()
    by_name = isinstance(best, Mapping)
    found = [Likely(e.token_id, e.text, logprob(e.logprob)) for e in _entries(best, vocab_size)]
    # Among equals the one goes that was added for being the token itself; else the lowest id stands first.
    added = len(found) > top
    listed = sorted(found, key=lambda t: (-t.logprob, added and _same(t, own), t.token_id or 0))
    _check_sum(listed, own)
    if all(likely.token_id is not None for likely in listed):
        if own.token_id is None:
            return tuple(listed[:top])
        _check_ids(listed, own)
        return tuple(_without_own_tail(listed, own, top))
    # A dict by text holds one entry for all tokens that are written alike, and the better one may be the lost one.
    if by_name:
        return () if _collided(listed, own, top) else tuple(_without_own_tail(listed, own, top))
    return tuple(listed[: _unclear_at(listed)][:top])


def _entries(best: Any, vocab_size: int | None) -> list[TopEntry]:
    if isinstance(best, Mapping):
        return [_keyed(name, value, vocab_size) for name, value in best.items()]
    return [_unkeyed(row, vocab_size) for row in listing(best, "alternatives")]


def _keyed(name: Any, value: Any, vocab_size: int | None) -> TopEntry:
    """Of a dict: by text or `token_id:N` with a number, or by id with an object."""
    word = text(name, "an alternative")
    if isinstance(value, Mapping):
        own = _id_of(_ID_PREFIX + word, vocab_size)
        return TopEntry(own, _decoded(value), value.get("logprob"))
    own = _id_of(word, vocab_size)
    return TopEntry(own, word if own is None else "", value)


def _unkeyed(row: Any, vocab_size: int | None) -> TopEntry:
    """Of a list: an object, or SGLang's triple."""
    if isinstance(row, Mapping):
        return TopEntry(_own_id(row, vocab_size), _word(row), row.get("logprob"))
    value, own, word = _triple(row)
    return TopEntry(token_id(own, vocab_size), "" if word is None else text(word, "a token"), value)


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
    """The best ones alone: servers add the token itself, however improbable, and tokens between may be missing.

    Where as many came as were asked for, cutting there does it. Which ones are kept must not hang on the own token, so
    the last one goes for being it only where a server gave fewer.
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
    """Whether texts may have fallen together: fewer than were asked for, parts of characters, or another value."""
    beside = next((likely.logprob for likely in listed if likely.text == own.text), own.logprob)
    fewer = len(listed) < top and not _complete(listed)
    return fewer or _unclear_at(listed) < len(listed) or not _close(beside, own.logprob)


def _unclear_at(listed: Sequence[Likely]) -> int:
    """Where the first one stands that its text does not identify; their number where there is none."""
    seen: dict[str, int] = {}
    for likely in listed:
        seen[likely.text] = seen.get(likely.text, 0) + 1
    for at, likely in enumerate(listed):
        if likely.token_id is None and (not likely.text or _REPLACEMENT in likely.text or seen[likely.text] > 1):
            return at
    return len(listed)
