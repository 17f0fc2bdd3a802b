"""From timed calls to the time of a mean round."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from specviz.bench.forecast.follow import Expected, FollowedBlock, expect
from specviz.bench.forecast.times import DraftTimes, Place, TargetTimes, time_draft
from specviz.core.rounds import EMPTY, NO_DRAFT, Candidate
from specviz.core.sampling import Row
from specviz.core.settings import Rule, Sampling
from specviz.drafters.ngram import NgramDrafter


def candidate(times: list[float], copied: list[bool]) -> Candidate:
    n = len(times)
    logprobs = tuple(None if c else -1.0 for c in copied)
    return Candidate((0,) * n, (Row.one_hot(0),) * n, logprobs, (None,) * n, ((),) * n, tuple(times))


def test_a_call_is_divided_into_its_tokens_and_the_rest() -> None:
    times = DraftTimes()
    times.add(candidate([30.0, 10.0, 1.0, 11.0], [False, False, True, False]), 4, 57.0)
    times.add(candidate([10.0], [False]), 4, 22.0)
    times.add(EMPTY, 4, 0.5)
    assert (times.first, times.later, times.copied) == ([30.0, 10.0], [10.0, 11.0], [1.0])
    assert (times.rest, times.ended) == ([5.0], [12.0, 0.5])


def test_the_time_of_a_mean_draft_is_the_sum_of_its_parts() -> None:
    times = DraftTimes([20.0], [10.0, 12.0, 11.0], [1.0], [5.0], [9.0])
    # One round that draws two and copies one, one that copies one and ends early, one that drafts nothing.
    expected = Expected(tokens=6, rounds=3, drafted=4, drawn=2, drawing=1, ended=2)
    assert times.round_ms(expected) == pytest.approx((20 + 11 + 2 * 1 + 2 * 9 + 5) / 3)
    assert DraftTimes().round_ms(expected) == 0.0 and times.round_ms(Expected()) == 0.0


def test_calls_of_two_kinds_are_averaged_and_an_outlier_is_not() -> None:
    times = DraftTimes(rest=[10.0, 0.0, 10.0, 0.0, 10.0, 0.0, 10.0, 999.0])
    assert times.round_ms(Expected(rounds=2, tokens=2)) == pytest.approx(40 / 6)


class Counting(NgramDrafter):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[int, int]] = []

    def propose(self, context_ids, k, sampling, noise, n=1, explain=2):  # type: ignore[no-untyped-def]
        self.calls.append((len(context_ids), k))
        return super().propose(context_ids, k, sampling, noise, n, explain)


def drafted(limit_s: float) -> list[tuple[int, int]]:
    ids = (1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 9, 8, 7, 6, 5, 5)
    drafter, clock = Counting(), count()
    place = Place(ids, 4, 2, Sampling(), Rule())
    time_draft(DraftTimes(), drafter, place, [1, 4], 0, lambda: float(next(clock)), limit_s)
    return drafter.calls


def test_a_draft_is_timed_at_the_places_of_a_run() -> None:
    """The first call only reads; then four are copied and kept and one more comes; K takes turns."""
    assert drafted(99.0) == [(6, 1), (6, 4), (11, 1), (12, 4), (13, 1), (14, 4), (15, 1)]


def test_a_slow_draft_is_timed_once_for_each_k() -> None:
    assert drafted(0.0) == [(6, 1), (6, 4), (11, 1)]


def test_a_mean_call_is_over_the_lengths_and_not_of_the_mean_length() -> None:
    """Half of the blocks are empty and half have four tokens: no block has two."""
    times = TargetTimes([100.0, 104.0, 102.0], {0: [100.0], 1: [150.0], 4: [160.0]}, [2.0], [1.0])
    expected = Expected(tokens=15, rounds=10)
    expected.lengths[0], expected.lengths[4] = 5, 5
    assert times.round_ms(expected) == pytest.approx((100 + 160) / 2 + 2.0 * 1.5 + 1.0)
    assert times.plain_ms == pytest.approx(102 + 2 + 1)
    expected.lengths[:] = 0
    expected.lengths[3] = 10
    assert times.round_ms(expected) == pytest.approx(150 + 10 * 2 / 3 + 3 + 1)


def test_without_samples_a_time_is_unknown() -> None:
    assert TargetTimes().plain_ms is None and TargetTimes().round_ms(expect([FollowedBlock((), ())], 1, 1)) is None


def test_copies_continue_from_the_beginning_after_the_end_of_the_text() -> None:
    place = Place((5, 6, 7, 8), 2, 1, Sampling(), Rule())
    found = place.copies(3).first
    assert place.context == (5, 6, 7) and found.token_ids == (8, 5, 6) and place.copies(0) == NO_DRAFT
    assert all(np.array_equal(q.dense(9), np.eye(9)[t]) for q, t in zip(found.q, found.token_ids, strict=True))
