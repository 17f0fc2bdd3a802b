"""Sums of figures of which some are not known: None is "not known", and never counts as 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def sum_known(values: Iterable[Number | None]) -> Number | None:
    """The sum of the values that are known; None when none is."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def sum_all(values: Iterable[Number | None]) -> Number | None:
    """The sum of the values; None when one of them is not known, or there are none."""
    given = list(values)
    return None if None in given else sum_known(given)
