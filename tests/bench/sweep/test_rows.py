"""Benchmark rows checked by hand: acceptance rate, accepted and tokens per round from small counts."""

from __future__ import annotations

import csv
import dataclasses
import io

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.bench.statistics import Interval, bootstrap_ratio, bootstrap_share, quartiles
from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.compare import compare
from specviz.bench.sweep.export import table, to_csv, to_parquet
from specviz.bench.sweep.plan import SweepPlan
from specviz.bench.sweep.recommendation import verdict
from specviz.bench.sweep.results import Bench, Trial, dumps, loads
from specviz.bench.sweep.rows import rows_of
from specviz.cli import bench_report as report
from specviz.core.errors import SettingsError
from specviz.core.events import TimeSplit
from specviz.core.settings import Settings
from specviz.views.benchmark.table import records as table_on_page


def trial(
    cell: int,
    prompt: int,
    *,
    tokens: int,
    rounds: int,
    accepted: int = 0,
    tested: int | None = None,
    ms: float = 100.0,
    repeat: int = 0,
) -> Trial:
    reached = accepted + 1 if tested is None else tested
    return Trial(
        cell, prompt, repeat, tokens=tokens, rounds=rounds, drafted=4 * rounds, tested=reached, accepted=accepted,
        steady_tokens=tokens - 1, steady_ms=ms, proposed=(rounds,), reached=(reached,), kept=(accepted,),
        split=TimeSplit(wall_ms=ms, draft_ms=ms / 4, target_ms=ms / 2), finish="max_tokens", guarantee="EXACT",
        text_hash=f"{prompt}",
    )  # fmt: skip


def bench(*trials: Trial, prompts: int = 10, **changes: object) -> Bench:
    made = SweepPlan(Settings(target="toy", draft="none", max_tokens=24), drafts=("ngram",), ks=(4,))
    asked = tuple(BenchPrompt(f"p{i}", "a" if i < 5 else "b", f"prompt {i}") for i in range(prompts))
    return Bench(dataclasses.replace(made, **changes), asked, list(trials))  # type: ignore[arg-type]


def test_ten_accepted_in_43_rounds() -> None:
    made = bench(trial(0, 0, tokens=53, rounds=53), trial(1, 0, tokens=53, rounds=43, accepted=10))
    row = rows_of(made)[1]
    assert row.accepted_per_round == pytest.approx(10 / 43) and row.tokens_per_round == pytest.approx(53 / 43)
    line = next(line for line in report.text(made).splitlines() if line.startswith("ngram"))
    assert " 0.233 " in line and " 1.233 " in line


def test_one_long_and_nine_short_prompts_print_both_means() -> None:
    # The long answer: 1,000 tokens in 250 rounds; the short ones: 10 tokens in 10 rounds each.
    long = trial(1, 0, tokens=1000, rounds=250, accepted=750, tested=800, ms=1000.0)
    short = [trial(1, i, tokens=10, rounds=10, accepted=0, tested=10, ms=100.0) for i in range(1, 10)]
    plain = [trial(0, i, tokens=1000 if i == 0 else 10, rounds=10, ms=2000.0 if i == 0 else 100.0) for i in range(10)]
    row = rows_of(made := bench(long, *short, *plain))[1]
    assert row.tokens_per_round == pytest.approx(1090 / 340) and row.tokens_per_round_by_prompt == pytest.approx(
        (4 + 9) / 10
    )
    assert row.acceptance == pytest.approx(750 / 890) and row.acceptance_by_prompt == pytest.approx((750 / 800) / 10)
    assert row.speedup == pytest.approx(((999 + 81) / 1900) / ((999 + 81) / 2900))
    assert row.speedup_by_prompt == pytest.approx((2 + 9) / 10)
    line = next(line for line in report.text(made).splitlines() if line.startswith("ngram"))
    assert f" {1090 / 340:.3f} " in line and " 1.300 " in line


def test_drafts_that_always_fail_are_slower_and_the_verdict_says_so() -> None:
    runs = [trial(1, i, tokens=24, rounds=24, accepted=0, tested=23, ms=150.0) for i in range(4)]
    plain = [trial(0, i, tokens=24, rounds=24, ms=100.0) for i in range(4)]
    rows = rows_of(bench(*runs, *plain, prompts=4))
    assert rows[1].speedup == pytest.approx(2 / 3) and rows[1].acceptance == 0.0
    found = verdict(rows, 0.0)
    assert found.speculate is False and found.words.startswith("Do not speculate here") and "0.67 ×" in found.words


@pytest.mark.parametrize(
    ("ms", "speculate", "says"),
    [
        ([50.0] * 6, True, "2.00 × [2.00 to 2.00] plain decoding"),
        ([50.0, 150.0, 50.0, 150.0, 100.0, 60.0], None, "No gain beyond chance"),
        ([200.0] * 6, False, "Do not speculate here"),
        ([50.0], None, "on a single prompt"),
    ],
)
def test_the_verdict_follows_the_interval(ms: list[float], speculate: bool | None, says: str) -> None:
    runs = [trial(1, i, tokens=101, rounds=30, accepted=71, ms=t) for i, t in enumerate(ms)]
    plain = [trial(0, i, tokens=101, rounds=101, ms=100.0) for i in range(len(ms))]
    found = verdict(rows_of(bench(*runs, *plain, prompts=len(ms))), 0.0)
    assert found.speculate is speculate and says in found.words


def test_the_fastest_draft_is_named_with_its_margin() -> None:
    plan = SweepPlan(Settings(target="toy", draft="none"), drafts=("ngram", "toy"), ks=(4,))
    times = {0: 100.0, 1: 80.0, 2: 50.0}
    runs = [trial(c, p, tokens=101, rounds=50, ms=ms) for c, ms in times.items() for p in range(4)]
    found = verdict(rows_of(Bench(plan, tuple(BenchPrompt(str(i), "a", "x") for i in range(4)), runs)), 0.0)
    assert found.words.startswith("toy with K = 4: 2.00 ×") and "ngram with K = 4 is next, 60 % behind." in found.words


def test_a_draft_that_is_as_fast_is_named() -> None:
    plan = SweepPlan(Settings(target="toy", draft="none"), drafts=("ngram", "toy"), ks=(4,))
    runs = [trial(c, p, tokens=101, rounds=50, ms=ms) for c, ms in enumerate((100.0, 50.0, 50.1)) for p in range(4)]
    found = verdict(rows_of(Bench(plan, tuple(BenchPrompt(str(i), "a", "x") for i in range(4)), runs)), 0.0)
    assert found.words.endswith("plain decoding. toy with K = 4 is as fast.")


def test_the_faster_draft_wins_over_the_one_with_more_tokens_per_round() -> None:
    """Reported as Spec-Bench#29."""
    plan = SweepPlan(Settings(target="toy", draft="none"), drafts=("ngram", "toy"), ks=(4,))
    made = {0: (100.0, 100, 0), 1: (70.0, 60, 40), 2: (90.0, 25, 75)}
    runs = [
        trial(c, p, tokens=101, rounds=rounds, accepted=kept, ms=ms)
        for c, (ms, rounds, kept) in made.items()
        for p in range(4)
    ]
    rows = rows_of(Bench(plan, tuple(BenchPrompt(str(i), "a", "x") for i in range(4)), runs))
    assert (rows[2].tokens_per_round or 0) > (rows[1].tokens_per_round or 0)
    assert verdict(rows, 0.0).words.startswith("ngram with K = 4: 1.43 ×")


def test_what_is_not_measured_is_unknown_and_not_zero() -> None:
    rows = rows_of(bench(trial(0, 0, tokens=1, rounds=1, ms=0.0)))
    assert rows[1].acceptance is None and rows[1].tokens_per_round is None and rows[1].speedup is None
    assert rows[0].tokens_per_second is None, "a single round is all prefill"
    text = report.text(bench())
    assert "n/a" in text and " 0.000" not in text and verdict(rows, 0.0).words == "Nothing was compared yet."
    assert all(v is None for k, v in table(rows)[1].items() if k in ("speedup", "acceptance_rate", "tokens_per_second"))


def test_speed_ups_are_over_the_prompts_that_both_have() -> None:
    rows = rows_of(
        bench(
            trial(0, 0, tokens=11, rounds=11, ms=100.0),
            trial(1, 0, tokens=11, rounds=5, ms=50.0),
            trial(1, 1, tokens=11, rounds=5, ms=9000.0),
        )
    )
    assert rows[1].speedup == pytest.approx(2.0)


def test_domains_and_positions() -> None:
    runs = [trial(1, i, tokens=11, rounds=5, accepted=6, tested=8, ms=50.0 if i < 5 else 200.0) for i in range(10)]
    plain = [trial(0, i, tokens=11, rounds=11, ms=100.0) for i in range(10)]
    row = rows_of(bench(*runs, *plain))[1]
    assert {n: (d.speedup, d.prompts) for n, d in row.domains.items()} == {"a": (2.0, 5), "b": (0.5, 5)}
    assert row.reached == (80,) and row.kept == (60,) and row.by_position == [0.75]
    assert row.split.wall_ms == pytest.approx(sum(t.steady_ms for t in runs))


def test_greedy_texts_that_differ_are_reported() -> None:
    other = dataclasses.replace(trial(1, 0, tokens=11, rounds=5, accepted=6), text_hash="other")
    made = bench(trial(0, 0, tokens=11, rounds=11), other)
    assert rows_of(made)[1].same_text == (0, 1) and "1 of 1 texts are not those of plain decoding" in report.text(made)


@pytest.mark.parametrize(
    ("guarantees", "worst"),
    [
        (["BOUNDED(0.0021)", "BOUNDED(0.013)"], "BOUNDED(0.013)"),
        (["BOUNDED(0.013)", "EXACT"], "BOUNDED(0.013)"),
        (["EXACT", "LOSSY", "BOUNDED(0.2)"], "LOSSY"),
        (["UNKNOWN", "LOSSY"], "UNKNOWN"),
        (["", "EXACT"], "EXACT"),
        ([], ""),
    ],
)
def test_a_row_has_the_worst_guarantee_of_its_runs(guarantees: list[str], worst: str) -> None:
    runs = [
        dataclasses.replace(trial(1, i, tokens=11, rounds=5, accepted=6), guarantee=guarantee)
        for i, guarantee in enumerate(guarantees)
    ]
    rows = rows_of(bench(*runs))
    assert rows[1].guarantee == worst
    assert table_on_page(rows, 1)[1]["Promise"] == (worst or "n/a")
    assert list(csv.DictReader(io.StringIO(to_csv(rows))))[1]["guarantee"] == worst
    assert pq.read_table(io.BytesIO(to_parquet(rows))).to_pylist()[1]["guarantee"] == worst


def test_csv_and_parquet_have_the_same_figures_and_no_formula() -> None:
    made = bench(
        trial(0, 0, tokens=11, rounds=11, tested=0),
        trial(1, 0, tokens=11, rounds=5, accepted=6),
        drafts=("=HYPERLINK(1)",),
    )
    rows = rows_of(made)
    read = list(csv.DictReader(io.StringIO(to_csv(rows))))
    arrow = pq.read_table(io.BytesIO(to_parquet(rows))).to_pylist()
    assert [r["draft"] for r in read] == ["none", "'=HYPERLINK(1)"] and [r["draft"] for r in arrow] == [
        "none",
        "=HYPERLINK(1)",
    ]
    assert float(read[1]["tokens_per_round"]) == arrow[1]["tokens_per_round"] == pytest.approx(2.2)
    assert read[0]["acceptance_rate"] == "" and arrow[0]["acceptance_rate"] is None
    assert read[1].keys() == arrow[1].keys() and to_csv([]) == "\n"


def test_a_saved_file_is_read_unchanged() -> None:
    made = bench(trial(0, 0, tokens=11, rounds=11), trial(1, 0, tokens=11, rounds=5, accepted=6))
    made.left_out[3] = "too long"
    assert loads(dumps(made, {"rows": []}).encode()) == made


def test_numbers_of_numpy_are_saved_as_numbers() -> None:
    run = trial(1, 0, tokens=11, rounds=5, accepted=6)
    made = bench(dataclasses.replace(run, steady_ms=np.float64(100.0), tokens=np.int64(11)))  # type: ignore[arg-type]
    assert loads(dumps(made).encode()).trials == [run]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"specviz.bench/1"', '"specviz.bench/2"'), ('"rounds": 5', '"rounds": -5'), ('"rounds": 5', '"rounds": true'),
        ('"steady_ms": 100.0', '"steady_ms": null'), ('"cell": 1', '"cell": 7'), ('"ks": [4]', '"ks": [400]'),
        ('"kept": [6]', '"kept": ["6"]'), ('"suite"', '"sweet"'), ('"max_tokens": 24', '"max_tokens": "24"'),
        ('"text": "prompt 0"', '"text": 0'),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(old: str, new: str) -> None:
    text = dumps(bench(trial(1, 0, tokens=11, rounds=5, accepted=6)))
    assert old in text
    with pytest.raises(SettingsError):
        loads(text.replace(old, new, 1).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"null", b'{"schema": "specviz.bench/1"}', b"[" * 100_000])
def test_what_is_not_a_benchmark_is_refused(data: bytes) -> None:
    with pytest.raises(SettingsError):
        loads(data)


def test_two_benchmarks_beside_each_other() -> None:
    def made(ms: float, **changes: object) -> Bench:
        runs = [trial(1, i, tokens=101, rounds=50, ms=ms + i) for i in range(6)]
        return bench(
            *runs, *(trial(0, i, tokens=101, rounds=101, ms=100.0 + i) for i in range(6)), prompts=6, **changes
        )

    same, faster = compare(made(80.0), made(80.0)), compare(made(80.0), made(40.0, ks=(4, 8)))
    assert [p.speedup.beyond_chance for p in same.pairings] == [None, False] and same.differences == ()
    assert faster.pairings[1].speedup.beyond_chance and [c.k for c in faster.only_after] == [8]
    other = made(80.0, settings=Settings(target="toy", draft="none", max_tokens=48))
    other.machine["processor"] = "another"
    found = compare(made(80.0), other).differences
    assert (
        any(d.startswith("max_tokens: 24, then 48") for d in found) and "processor: not recorded, then another" in found
    )


@given(st.lists(st.tuples(st.floats(1, 50), st.floats(1, 50)), min_size=2, max_size=12))
def test_the_interval_of_a_ratio_is_around_it(sides: list[tuple[float, float]]) -> None:
    tokens, ms = [t for t, _ in sides], [m for _, m in sides]
    found = bootstrap_ratio(tokens, ms, tokens, ms)
    assert found is not None and found.low == pytest.approx(1.0) and found.high == pytest.approx(1.0)
    share = bootstrap_share(tokens, ms)
    ratios = [t / m for t, m in sides]
    assert share is not None and min(ratios) - 1e-9 <= share.low <= share.high <= max(ratios) + 1e-9


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for seed in range(200):
        tokens = rng.normal(100, 20, 30).clip(10)
        found = bootstrap_share(tokens.tolist(), [50.0] * 30, seed=seed)
        assert found is not None
        hits += 2.0 in found
    assert 176 <= hits <= 198


def test_one_prompt_says_nothing_about_others() -> None:
    assert bootstrap_ratio([1.0], [1.0], [1.0], [1.0]) is None and bootstrap_share([1.0, 1.0], [0.0, 0.0]) is None
    assert (
        quartiles([]) is None
        and Interval(0, 1).overlaps(Interval(1, 2))
        and not Interval(0, 1).overlaps(Interval(1.1, 2))
    )
