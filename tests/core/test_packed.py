"""Packed rows equal the rows that they were made from."""

from __future__ import annotations

import math
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from specviz.core.events import Alternative, Weighed
from specviz.core.packed import Packed, packed

numbers = st.floats(allow_nan=False)
names = st.text(max_size=8)
# A damaged recording can contain any id.
ids = st.integers(0, 2**40)
alternatives = st.lists(st.builds(Alternative, ids, names, numbers, numbers), max_size=12)
candidates = st.lists(st.builds(Weighed, ids, names, st.none() | numbers, st.none() | numbers), max_size=12)


@given(alternatives)
def test_alternatives_come_back_as_they_were(rows: list[Alternative]) -> None:
    held = packed(Alternative, tuple(rows))
    assert list(held) == rows and len(held) == len(rows)
    assert all(isinstance(row, Alternative) for row in held)
    assert held == tuple(rows) and tuple(rows) == held
    assert hash(held) == hash(tuple(rows))
    assert [held[i] for i in range(-len(rows), len(rows))] == 2 * rows
    assert held[1:3] == tuple(rows[1:3])


@given(candidates)
def test_what_is_not_known_stays_so(rows: list[Weighed]) -> None:
    held = packed(Weighed, tuple(rows))
    assert list(held) == rows
    assert [(c.p is None, c.q is None) for c in held] == [(c.p is None, c.q is None) for c in rows]


def test_other_rows_are_not_equal() -> None:
    one = packed(Alternative, (Alternative(1, "a", -1.0, 0.5),))
    assert one != packed(Alternative, (Alternative(1, "a", -1.0, 0.25),))
    assert one != (Alternative(2, "a", -1.0, 0.5),)
    assert one != [Alternative(1, "a", -1.0, 0.5)]


def test_no_rows_and_a_nan_stay_a_tuple() -> None:
    assert packed(Alternative, ()) == ()
    odd = (Alternative(1, "a", math.nan, 0.5),)
    assert packed(Alternative, odd) is odd


def test_packed_once_is_packed() -> None:
    held = packed(Alternative, (Alternative(1, "a", -1.0, 0.5),))
    assert isinstance(held, Packed)
    assert packed(Alternative, held) is held


def test_it_takes_a_third_of_the_memory() -> None:
    def rows(n: int) -> tuple[Alternative, ...]:
        return tuple(Alternative(1000 + i, f" token {i}", -1.5 - i, 1 / (n + 2 + i)) for i in range(10))

    tracemalloc.start()
    try:
        plain = [rows(n) for n in range(200)]
        of_tuples, _ = tracemalloc.get_traced_memory()
        held = [packed(Alternative, rows(n)) for n in range(200)]
        of_packed = tracemalloc.get_traced_memory()[0] - of_tuples
    finally:
        tracemalloc.stop()
    assert [list(row) for row in held] == [list(row) for row in plain]
    assert of_packed < of_tuples / 3
