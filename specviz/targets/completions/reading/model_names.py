"""Which model answered: a server may run another one than it was asked for, and say so only in its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LONGEST = 120


def model_in(body: Any) -> str:
    """The model that an answer of the completions API names; empty where it names none.

    Endpoints of the engines' own are left out: llama-server's repeats a name that it was sent, or has a fixed one.
    """
    given = body.get("model") if isinstance(body, Mapping) and "choices" in body else None
    return plain_name(given)


def plain_name(given: object) -> str:
    """A name, fit to be shown; empty for anything else."""
    return "".join(c for c in given if c.isprintable())[:_LONGEST] if isinstance(given, str) else ""


def same_name(one: str, other: str) -> bool:
    """Whether two names are one name: without regard to case, and to an organisation or folder that one of them has.

    A date or a size behind a name may stand for other weights, so a name with one is another name.
    """
    one, other = one.casefold(), other.casefold()
    return one == other or one.endswith("/" + other) or other.endswith("/" + one)


def other_model(asked: str, answered: str) -> str:
    """A sentence where the server answers under another name than it was asked for; empty where it does not."""
    if not answered or same_name(asked, answered):
        return ""
    return (
        f"The server was asked for the model {asked} and answers as {answered}: a name alone does not say whether "
        "these are the same weights."
    )
