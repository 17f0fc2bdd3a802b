"""The best K, from counts and times that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specviz.core.cost_model import CostModel, VerifyCurve

#: Of 100 rounds 80, 40 and 10 keep at least 1, 2 and 3 tokens. A draft takes 10 ms, a call 100 ms, plus 5 ms
#: per drafted token.
MODEL = CostModel(
    rounds=100,
    kept=(80, 40, 10),
    proposed=(100, 100, 100),
    draft_ms=10.0,
    verify=VerifyCurve.of([(0, 100), (3, 115)]),
    other_ms=5.0,
)


def test_tokens_and_time_of_a_round() -> None:
    assert MODEL.tokens_per_round([0, 1, 2, 3]).tolist() == pytest.approx([1.0, 1.8, 2.2, 2.3])
    assert MODEL.round_ms([0, 1, 2, 3]).tolist() == pytest.approx([105, 120, 135, 150])
    assert MODEL.tokens_per_second(2) == pytest.approx(2200 / 135)
    assert MODEL.round_ms(2, rtt_ms=50, draft_ms=1) == pytest.approx(167)


def test_the_best_k_is_the_fastest_and_may_be_0() -> None:
    assert MODEL.best_k(range(4)) == 2
    assert MODEL.best_k(range(4), draft_ms=200.0) == 0, "a slow draft"
    assert MODEL.best_k(range(4), rtt_ms=2000.0) == 3, "a long way makes calls expensive"
    assert replace(MODEL, kept=(0, 0, 0)).best_k(range(4)) == 0, "nothing is kept"
    assert replace(MODEL, kept=(0, 0, 0), draft_ms=0.0, verify=VerifyCurve(((0, 100),))).best_k([1, 2]) == 1, "equal"


def test_without_times_there_is_no_speed() -> None:
    free = replace(MODEL, draft_ms=0.0, verify=VerifyCurve(((0.0, 0.0),)), other_ms=0.0)
    assert free.tokens_per_second([0, 2]).tolist() == [0.0, 0.0]


def test_drafts_that_end_early_cost_less() -> None:
    early = replace(MODEL, proposed=(100, 50, 0))
    assert early.drafted_per_round(3) == pytest.approx(1.5)
    assert early.round_ms(3) == pytest.approx(1.5 * 10 + 100 + 1.5 * 5 + 5)
