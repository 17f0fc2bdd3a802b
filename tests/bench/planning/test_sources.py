"""What is planned from a saved benchmark or prediction."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from specviz.bench.planning.model import Costs, speedup
from specviz.bench.planning.sources import from_bench, read
from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.plan import SweepPlan
from specviz.bench.sweep.results import Bench, Trial, dumps
from specviz.bench.sweep.rows import rows_of
from specviz.core.errors import SettingsError
from specviz.core.events import TimeSplit
from specviz.core.settings import Settings

KEPT = (60, 40, 20, 10, 5, 0, 0, 0)


def _trial(cell: int, k: int, prompt: int, call_ms: float = 0.0) -> Trial:
    """101 rounds of K drafts each: 2 ms a draft, 100 + 5 K to verify, 1 the rule, 4 the rest."""
    if not k:
        return Trial(cell, prompt, 0, 101, 0, 0, 0, 0, 100, 100 * 105.0)
    kept = KEPT[:k]
    tokens = 101 + sum(kept)
    verify = 100.0 * (100 + 5 * k)
    wall = 100 * (2 * k + 5) + verify
    split = TimeSplit(wall, 200.0 * k, 0.0, 0.0, 0.0 if call_ms else verify, 100.0, verify if call_ms else 0.0)
    return Trial(
        cell, prompt, 0, tokens, 101, 101 * k, sum([101, *kept[:-1]]), sum(kept), round(tokens / 1.01), wall,
        (101,) * k, (101, *kept[:-1]), kept, split,
    )  # fmt: skip


def _bench(**changes: Any) -> Bench:
    plan = dataclasses.replace(SweepPlan(Settings(target="toy", draft="none"), ("ngram",), (2, 8, 4)), **changes)
    trials = [_trial(i, cell.k, prompt) for i, cell in enumerate(plan.cells()) for prompt in range(2)]
    return Bench(plan, (BenchPrompt("a", "chat", "A?"), BenchPrompt("b", "chat", "B?")), trials)


def test_rows_of_one_draft_at_several_k_are_one_source() -> None:
    (known,) = from_bench(_bench())
    assert known.source == "ngram, probabilistic, T = 0 → toy"
    assert (known.k, known.rounds, known.kept) == (8, 202, tuple(2 * n for n in KEPT))
    assert known.proposed == pytest.approx((202,) * 8)
    assert (known.plain_ms, known.draft_ms, known.other_ms) == pytest.approx((105, 2, 5))
    assert dict(known.verify.points) == pytest.approx({0: 100, 2: 110, 4: 120, 8: 140})


def test_the_plan_of_a_row_is_the_row() -> None:
    made = _bench()
    (known,) = from_bench(made)
    for row in rows_of(made)[1:]:
        planned = speedup(known, row.cell.k, Costs(0.0, known.draft_ms))
        assert planned == pytest.approx(row.speedup, rel=0.005)
        assert float(known.tokens_per_round(row.cell.k)) == pytest.approx(row.tokens_per_round)


def test_each_draft_temperature_and_rule_is_a_source() -> None:
    plan = {"drafts": ("ngram", "toy"), "temperatures": (0.0, 0.8), "rules": ("probabilistic", "deterministic")}
    assert len({known.source for known in from_bench(_bench(**plan))}) == 8


def test_what_was_not_measured_is_not_a_source() -> None:
    made = _bench()
    without_plain = [t for t in made.trials if t.cell]
    without_draft = [t for t in made.trials if not t.cell]
    for trials in (without_plain, without_draft, []):
        assert from_bench(dataclasses.replace(made, trials=trials)) == []
        with pytest.raises(SettingsError, match="both tested tokens and a baseline"):
            read(dumps(dataclasses.replace(made, trials=trials)).encode())


def test_calls_that_are_not_split_include_the_network() -> None:
    made = _bench(baselines=("streaming", "one call per token"), ks=(2,))
    made.trials = [_trial(i, cell.k, 0, 1.0) for i, cell in enumerate(made.plan.cells())]
    made.trials[1] = dataclasses.replace(made.trials[1], steady_ms=100 * 300.0)
    (known,) = from_bench(made)
    assert known.network_included and known.way == "scoring"
    assert (known.plain_ms, known.per_call_ms) == pytest.approx((105, 300))
    assert dict(known.verify.points) == pytest.approx({0: 295, 2: 110})


def _prediction(**changes: Any) -> dict[str, Any]:
    def row(draft: str, k: int, **more: Any) -> dict[str, Any]:
        kept = [60.0, 40.0, 20.0, 10.0][:k]
        return {
            "draft": draft, "k": k, "temperature": 0.8, "rule": "probabilistic", "acceptance": 0.6, "rounds": 100.0,
            "tokens_per_round": 1 + sum(kept) / 100, "drafted_per_round": 0.9 * k, "draft_ms": 1.8 * k,
            "verify_ms": 101 + 4.5 * k, "kept": kept, "reached": [100.0, *kept[:-1]], "accepted_per_round": None,
            "speedup": None, **more,
        }  # fmt: skip

    return {
        "schema": "specviz.predict/1",
        "plan": SweepPlan(Settings(target="toy", draft="none"), ("ngram", "slow"), (1, 4), (0.8,)).to_json(),
        "given": False, "written_ms": {}, "texts": 1, "tokens": 100, "seconds": 1.0, "writing_s": 1.0, "timing_s": 1.0,
        "rows": [row("none", 0, kept=[], reached=[]), row("ngram", 1), row("ngram", 4), row("slow", 4, draft_ms=None)],
        "plain_ms": {"0.8": 100.0},
        "verify_ms": {"0.8": {"1": 105.0, "4": 120.0}},
        **changes,
    }  # fmt: skip


def _bytes(data: Any) -> bytes:
    return json.dumps(data).encode()


def test_a_prediction_is_a_source_for_every_draft_that_was_timed() -> None:
    (known,) = read(_bytes(_prediction()))
    assert known.source == "predicted: ngram, probabilistic, T = 0.8 → toy"
    assert (known.k, known.kept, known.plain_ms) == (4, (60, 40, 20, 10), 100)
    assert known.proposed == pytest.approx((90,) * 4)
    assert (known.draft_ms, known.other_ms) == pytest.approx((2, 1))
    assert known.verify.points == ((0, 100), (1, 105), (4, 120))
    expected = 2.3 * 100 / (7.2 + 119)
    assert speedup(known, 4, Costs(0.0, known.draft_ms)) == pytest.approx(expected)


def test_a_larger_k_that_drafts_less_gives_no_negative_count() -> None:
    rows = _prediction()["rows"][1:3]
    (known,) = read(_bytes(_prediction(rows=[rows[0], {**rows[1], "drafted_per_round": 0.8}])))
    assert known.proposed == pytest.approx((90, 0, 0, 0))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rows": 3}, "damaged"),
        ({"rows": [3]}, "damaged"),
        ({"plain_ms": {"0.8": "nan"}}, "damaged"),
        ({"plain_ms": {"0.8": -1}}, "damaged"),
        ({"verify_ms": {"0.8": {"x": 1}}}, "damaged"),
        ({"plan": {}}, "damaged"),
        ({"rows": [{**_prediction()["rows"][2], "k": 10**9}]}, "damaged"),
        ({"rows": [{**_prediction()["rows"][2], "rounds": 0}]}, "damaged"),
        ({"rows": [{**_prediction()["rows"][2], "drafted_per_round": 0}]}, "damaged"),
        ({"plain_ms": {}}, "both tested tokens"),
        ({"verify_ms": {}}, "both tested tokens"),
        ({"rows": []}, "both tested tokens"),
    ],
)
def test_a_damaged_prediction_is_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        read(_bytes(_prediction(**change)))


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"3", b"{}", b"\xff\xfe", b'{"schema": "other"}'])
def test_what_is_neither_is_refused(data: bytes) -> None:
    with pytest.raises(SettingsError):
        read(data)
