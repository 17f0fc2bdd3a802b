"""Alarms: the machine drifts, or the draft stops working during a session (vllm#36872)."""

from __future__ import annotations

import dataclasses

import pytest

from specviz.bench.sweep.alarms import alarms
from specviz.bench.sweep.results import Bench
from specviz.cli import bench_report as report
from tests.bench.sweep.test_rows import bench, trial


def _made(accepted: list[int], ms: list[float]) -> Bench:
    runs = [trial(1, i, tokens=60, rounds=30, accepted=a, tested=60) for i, a in enumerate(accepted)]
    plain = [trial(0, i, tokens=60, rounds=60, ms=m, tested=0) for i, m in enumerate(ms)]
    every = [t for pair in zip(plain, runs, strict=True) for t in pair]
    return bench(*(dataclasses.replace(t, order=i) for i, t in enumerate(every)), prompts=len(accepted))


STEADY, EVEN = [30, 33, 28, 31, 30, 29, 32, 30], [100.0, 103.0, 98.0, 101.0, 100.0, 99.0, 102.0, 100.0]


def test_a_steady_sweep_raises_none() -> None:
    assert alarms(_made(STEADY, EVEN)) == []


def test_acceptance_that_falls_over_the_session() -> None:
    (told,) = alarms(made := _made([36, 37, 36, 37, 1, 0, 1, 0], EVEN))
    assert told.startswith("ngram, K = 4") and "fell from 0.61" in told and "to 0.01" in told
    assert f"Doubtful: {told}" in report.text(made) and report.summary(made)["alarms"] == [told]
    assert alarms(_made([0, 1, 0, 1, 37, 36, 37, 36], EVEN)) == [], "a rise is no fall"


def test_the_order_of_measuring_counts_and_not_that_of_the_file() -> None:
    made = _made([36, 37, 36, 37, 1, 0, 1, 0], EVEN)
    made.trials.reverse()
    assert len(alarms(made)) == 1


def test_a_machine_that_became_slower_is_seen_in_plain_decoding() -> None:
    (told,) = alarms(_made(STEADY, EVEN[:4] + [150.0] * 4))
    assert "plain decoding" in told and "the machine became slower" in told


@pytest.mark.parametrize("runs", [2, 6])
def test_few_runs_raise_no_alarm(runs: int) -> None:
    half = runs // 2
    assert alarms(_made([37] * half + [0] * half, [100.0] * half + [300.0] * half)) == []
