"""Answers with something wrong in them."""

import copy
import math
from typing import Any

from hypothesis import strategies as st

STRANGE: list[Any] = [
    None, True, False, 0, 1, 2, -1, 3, 10**9, 2**31, 10**400, 0.0, -0.0, 0.5, 1e-9, -0.5, -5.0, -9999.0, -3.4e38,
    math.nan, math.inf, -math.inf, "", "a", "1", "-0.5", "null", "token_id:1", "token_id:9999999999", "token_id:²",
    "\ufffd", "\ud800", "stop", [], {}, [[]], [None], {"logprob": -1.0}, {"meta_info": {}}, {"content": []},
]  # fmt: skip


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(p for key, v in inner for p in paths(v, (*here, key)))]


def mutate(body: Any, draw: Any) -> Any:
    """One change at one place."""
    where = draw(st.sampled_from(paths(body)))
    if not where:
        return copy.deepcopy(draw(st.sampled_from([[body], [body, body], *STRANGE])))
    holder = body
    for key in where[:-1]:
        holder = holder[key]
    key, value = where[-1], holder[where[-1]]
    kind = draw(st.sampled_from(["drop", "strange", "double", "cut", "turn", "nudge", "swap"]))
    if kind == "drop":
        del holder[key]
    elif kind == "strange":
        holder[key] = copy.deepcopy(draw(st.sampled_from(STRANGE)))
    elif kind == "double" and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(value))
    elif kind == "cut" and isinstance(value, list | str):
        holder[key] = value[: draw(st.integers(0, len(value)))]
    elif kind == "turn" and isinstance(value, list):
        value.reverse()
    elif kind == "nudge" and isinstance(value, int | float):
        holder[key] = draw(st.sampled_from([-value, value + 1, value - 1, value * 2, str(value), [value]]))
    elif kind == "swap" and isinstance(holder, dict):
        other = draw(st.sampled_from(sorted(holder)))
        holder[key], holder[other] = holder[other], holder[key]
    return body
