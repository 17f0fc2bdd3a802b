"""None is "not known", and never counts as 0."""

from specviz.core.known import sum_all, sum_known


def test_the_known_ones_are_added_and_nothing_known_stays_unknown() -> None:
    assert sum_known([None, 2, None, 3]) == 5 and sum_known([0]) == 0
    assert sum_known([None, None]) is None and sum_known([]) is None


def test_one_unknown_makes_a_whole_unknown() -> None:
    assert sum_all([1, 2.5]) == 3.5 and sum_all(iter([0, 0])) == 0
    assert sum_all([1, None]) is None and sum_all([]) is None
