"""Sequences of short tuples in little memory: a shown run keeps dozens of alternatives for every token."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

#: A named tuple of token id, token name, and two numbers that may be None.
Row = TypeVar("Row", bound=tuple[Any, ...])

_NONE = float("nan")


class Packed(Sequence[Row]):
    """Equal to the tuple of rows that it was made from, in less than a third of the memory; rows are created when read.

    Args:
        make: creates a row from its four values.
    """

    __slots__ = ("_ids", "_make", "_names", "_numbers")

    def __init__(self, make: Callable[[int, str, Any, Any], Row], rows: Sequence[Row]) -> None:
        self._make = make
        self._ids = array("q", (row[0] for row in rows))
        # Names repeat often, so each is stored once.
        self._names = tuple(sys.intern(row[1]) for row in rows)
        self._numbers = array("d", (_NONE if value is None else value for row in rows for value in row[2:]))

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, at: int | slice) -> Row | tuple[Row, ...]:
        return tuple(self)[at]

    def __iter__(self) -> Iterator[Row]:
        numbers = (None if value != value else value for value in self._numbers)
        return map(self._make, self._ids, self._names, numbers, numbers)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Packed | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def packed(make: Callable[[int, str, Any, Any], Row], rows: Sequence[Row]) -> Sequence[Row]:
    """The rows in packed form; a plain tuple when there are no rows or a number is nan."""
    if not rows:
        return ()
    if isinstance(rows, Packed):
        return rows
    if any(value != value for row in rows for value in row[2:]):
        return tuple(rows)
    return Packed(make, rows)
