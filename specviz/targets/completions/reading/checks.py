"""Checks of values out of a server's JSON. Each gives the value with its type, or says in words what is wrong.

Texts of the server's are never repeated in a message: they may hold anything, a key among it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from specviz.core.errors import AnswerError, LackingError

REMEDY = "Run specviz doctor against the server; if it goes on, take another way to verify, or another server."

#: Ids at or beyond this are no ids of any vocabulary.
ID_LIMIT = 2**31
#: Servers write "impossible" as a large number, since JSON has no -inf: vLLM -9999.0, llama-server -3.4e38.
IMPOSSIBLE = -9999.0
#: How far above 0 rounding can lift a log-probability, and how far above 1 a sum of probabilities.
LOGPROB_SLACK, SUM_SLACK = 1e-3, 2e-3


def refuse(problem: str) -> NoReturn:
    """The answer holds what cannot be true.

    Raises:
        AnswerError: always.
    """
    raise AnswerError(f"The server's answer cannot be used: {problem}.", REMEDY)


def lacking(problem: str) -> NoReturn:
    """The answer is sound as far as it goes, but lacks what was asked for.

    Raises:
        LackingError: always.
    """
    raise LackingError(f"The server's answer lacks what was asked for: {problem}.", REMEDY)


def shown(value: object) -> str:
    """A value in a few harmless words."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int):
        return str(value) if value.bit_length() < 64 else "a huge number"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list | tuple) else "an object" if isinstance(value, Mapping) else "nonsense"


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """A JSON object."""
    if not isinstance(value, Mapping):
        refuse(f"{what} must be an object, not {shown(value)}")
    return value


def listing(value: object, what: str) -> list[Any]:
    """A JSON list."""
    if not isinstance(value, list):
        refuse(f"{what} must be a list, not {shown(value)}")
    return value


def text(value: object, what: str) -> str:
    """A string."""
    if not isinstance(value, str):
        refuse(f"{what} must be a text, not {shown(value)}")
    return value


def whole(value: object, what: str, limit: int = 2**53) -> int:
    """A whole number from 0 up to below the limit; true and false are none."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
        refuse(f"{what} must be a whole number from 0 to {limit - 1}, not {shown(value)}")
    return value


def token_id(value: object, vocab_size: int | None = None) -> int:
    """A token id, inside the vocabulary where its size is known."""
    return whole(value, "a token id", ID_LIMIT if vocab_size is None else vocab_size)


def token_ids(value: object, what: str, vocab_size: int | None = None) -> tuple[int, ...]:
    """A list of token ids."""
    return tuple(token_id(i, vocab_size) for i in listing(value, what))


def number(value: object, what: str) -> float:
    """A finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        refuse(f"{what} must be a number, not {shown(value)}")
    try:
        real = float(value)
    except OverflowError:
        real = math.inf
    if not math.isfinite(real):
        refuse(f"{what} must be a finite number, not {shown(value)}")
    return real


def logprob(value: object) -> float:
    """A natural log-probability: at most 0.0; -inf for what servers write for "impossible"."""
    if value == -math.inf:
        return -math.inf
    real = number(value, "a log-probability")
    if real > LOGPROB_SLACK:
        refuse(f"a log-probability must be at most 0, not {shown(real)}")
    return -math.inf if real <= IMPOSSIBLE else min(real, 0.0)
