"""The sweep with the toy pair: everything is measured once, in random order, and cancelled and resumed without loss."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable

import pytest

from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.cell import run_cell, trial_of
from specviz.bench.sweep.compare import compare
from specviz.bench.sweep.plan import Cell, SweepPlan
from specviz.bench.sweep.results import Bench, Failure, dumps, loads
from specviz.bench.sweep.rows import rows_of
from specviz.bench.sweep.sweep import Sweep, baselines_of, new_bench, order, seconds_left
from specviz.core.errors import PairingError, SettingsError, StoppedError
from specviz.core.pair import Pair
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait
from specviz.setup.builder import Builder

TOY = Settings(target="toy", draft="none", max_tokens=24)
PROMPTS = tuple(BenchPrompt(f"p/{i}", "even" if i % 2 == 0 else "odd", f"the draft {i}") for i in range(4))


def plan(**changes: object) -> SweepPlan:
    return dataclasses.replace(SweepPlan(TOY, drafts=("toy", "ngram"), ks=(1, 4)), **changes)  # type: ignore[arg-type]


def run(bench: Bench, **changes: object) -> Bench:
    list(Sweep(bench, Builder({}).build, **changes).run())  # type: ignore[arg-type]
    return bench


def test_every_cell_runs_every_prompt_as_often_as_planned() -> None:
    bench = run(new_bench(plan(repeats=2, temperatures=(0.0, 1.0)), PROMPTS))
    cells = len(bench.plan.cells())
    assert cells == 2 * (1 + 4) and len(bench.trials) == bench.total == cells * 4 * 2 and bench.missing == 0
    assert set(Counter(t.key for t in bench.trials).values()) == {1}
    assert [t.order for t in bench.trials] == list(range(bench.total))
    assert bench.seconds > 0 and seconds_left(bench) == 0


def test_the_order_is_mixed_and_the_same_for_the_same_seed() -> None:
    bench = new_bench(plan(), PROMPTS)
    keys = list(order(bench))
    assert keys == list(order(bench)) and sorted(keys) != keys
    first_cells = {tuple(c for c, p, _ in keys if p == prompt) for prompt in range(4)}
    assert len(first_cells) > 1, "each prompt has an order of its own"
    prompts = [p for _, p, _ in keys]
    assert [p for i, p in enumerate(prompts) if i == 0 or p != prompts[i - 1]] == list(dict.fromkeys(prompts)), (
        "all cells of a prompt are measured before the next: a speed-up compares neighbours"
    )
    other = new_bench(plan(settings=dataclasses.replace(TOY, seed=1)), PROMPTS)
    assert list(order(other)) != keys


def test_counts_and_texts_are_those_of_a_run_by_itself_and_greedy_texts_are_the_targets_own() -> None:
    bench = run(new_bench(plan(), PROMPTS))
    again = run(new_bench(plan(), PROMPTS))
    counts = {t.key: (t.tokens, t.rounds, t.drafted, t.accepted, t.kept, t.text_hash) for t in bench.trials}
    assert counts == {t.key: (t.tokens, t.rounds, t.drafted, t.accepted, t.kept, t.text_hash) for t in again.trials}
    rows = rows_of(bench)
    assert all(r.same_text == (4, 4) for r in rows if not r.cell.baseline)
    assert [r.cell.baseline for r in rows] == ["plain decoding", None, None, None, None]
    assert all(r.guarantee == "EXACT" and r.trials == 4 for r in rows)
    toy = next(r for r in rows if r.cell.draft == "toy" and r.cell.k == 4)
    assert (
        toy.tokens_per_round
        and toy.tokens_per_round > 2
        and sum(toy.kept) == sum(t.accepted for t in bench.trials if t.cell == rows.index(toy))
    )


def test_first_rounds_are_in_no_rate_and_the_split_adds_up() -> None:
    bench = run(new_bench(plan(), PROMPTS[:1]))
    for trial in bench.trials:
        assert trial.steady_tokens < trial.tokens
        split = trial.split
        assert split.wall_ms == pytest.approx(trial.steady_ms)
        assert split.draft_ms + split.verify_ms + split.rule_ms + split.other_ms == pytest.approx(split.wall_ms)


@pytest.mark.parametrize("stop_after", [0, 1, 7])
def test_cancelled_and_resumed_it_has_what_an_uninterrupted_one_has(stop_after: int) -> None:
    whole = run(new_bench(plan(), PROMPTS))
    bench = new_bench(plan(), PROMPTS)
    sweep = Sweep(bench, Builder({}).build, Wait(cancelled=lambda: len(bench.trials) >= stop_after))
    list(sweep.run())
    assert len(bench.trials) == stop_after and bench.missing == bench.total - stop_after
    resumed = Bench.from_json(bench.to_json())
    run(resumed)
    assert [(t.key, t.text_hash) for t in resumed.trials] == [(t.key, t.text_hash) for t in whole.trials]


def test_a_run_that_is_cancelled_is_not_counted() -> None:
    pair = Builder({}).build(dataclasses.replace(TOY, draft="toy"))
    ids = pair.target.tokenizer.encode("the draft")
    calls = iter([False, False, True])
    cell = plan().cells()[1]
    with pytest.raises(StoppedError):
        run_cell(pair, plan(), cell, (1, 0, 0), ids, wait=Wait(cancelled=lambda: next(calls, True)))
    with pytest.raises(StoppedError):
        trial_of([], (0, 0, 0))


def test_paused_it_measures_nothing_and_then_continues() -> None:
    bench = new_bench(plan(), PROMPTS[:1])
    naps: list[int] = []
    told: list[Progress] = []
    run(
        bench,
        paused=lambda: len(bench.trials) == 2 and len(naps) < 3,
        sleep=lambda s: naps.append(1),
        wait=Wait(told.append),
    )
    assert len(naps) == 3 and bench.missing == 0
    assert [p.what for p in told].count("Paused") == 1
    assert told[-1].unit == "runs" and told[-1].total == bench.total


def test_a_draft_that_cannot_be_opened_does_not_affect_the_others() -> None:
    def build(settings: Settings) -> Pair:
        if settings.draft == "toy":
            raise PairingError("It does not fit.", "Take another.")
        return Builder({}).build(settings)

    bench = new_bench(plan(), PROMPTS)
    list(Sweep(bench, build).run())
    cells = bench.plan.cells()
    assert {cells[f.cell].draft for f in bench.failures} == {"toy"} and len(bench.failures) == 2
    assert {cells[t.cell].draft for t in bench.trials} == {"none", "ngram"} and bench.missing == 0
    row = rows_of(bench)[1]
    assert (
        row.failure == Failure(1, "It does not fit.", "Take another.")
        and row.speedup is None
        and row.acceptance is None
    )


def test_failed_cells_are_tried_again_when_a_sweep_is_resumed() -> None:
    down = [True]

    def build(settings: Settings) -> Pair:
        if down[0] and settings.draft == "toy":
            raise PairingError("The server is down.")
        return Builder({}).build(settings)

    bench = new_bench(plan(), PROMPTS)
    list(Sweep(bench, build).run())
    assert len(bench.failures) == 2 and bench.missing == 0
    down[0] = False
    again = Bench.from_json(bench.to_json())
    list(Sweep(again, build).run())
    assert again.failures == [] and len(again.trials) == again.total


def test_a_prompt_that_does_not_fit_is_left_out_and_reported() -> None:
    prompts = (PROMPTS[0], BenchPrompt("long", "even", "the " * 5000), BenchPrompt("empty", "odd", "   "))
    bench = run(new_bench(plan(), prompts))
    assert sorted(bench.left_out) == [1, 2] and "4096" in bench.left_out[1]
    assert {t.prompt for t in bench.trials} == {0} and bench.missing == 0
    assert Bench.from_json(bench.to_json()).left_out == bench.left_out


def test_behind_a_simulated_network_there_are_two_baselines() -> None:
    settings = dataclasses.replace(TOY, simulated_rtt_ms=3.0, max_tokens=16)
    assert baselines_of(settings) == ("plain decoding without the network", "one call per token")
    bench = run(
        new_bench(plan(settings=settings, baselines=baselines_of(settings), ks=(4,), drafts=("toy",)), PROMPTS[:2])
    )
    plain, per_call, toy = rows_of(bench)
    assert per_call.speedup is not None and per_call.speedup < 1
    assert toy.speedup is not None and toy.speedup_per_call is not None and toy.speedup_per_call > toy.speedup
    assert plain.speedup is None


def test_warm_up_is_in_no_figure() -> None:
    told: list[str] = []
    bench = run(new_bench(plan(warm_up=4), PROMPTS[:2]), wait=Wait(lambda p: told.append(p.what)))
    assert sum(w.startswith("Warming up") for w in told) == len(bench.plan.cells())
    none = run(new_bench(plan(warm_up=0), PROMPTS[:2]))
    assert [t.text_hash for t in none.trials] == [t.text_hash for t in bench.trials]


@pytest.mark.parametrize(
    "changes",
    [
        {"drafts": ()}, {"ks": ()}, {"ks": (1, 1)}, {"ks": (0,)}, {"ks": (17,)}, {"temperatures": (-1.0,)},
        {"rules": ("nonsense",)}, {"repeats": 0}, {"repeats": 21}, {"warm_up": -1}, {"min_confidence": 1.0},
        {"drafts": tuple(f"model:{i}" for i in range(60)), "ks": tuple(range(1, 9))},
    ],
)  # fmt: skip
def test_an_impossible_plan_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        plan(**changes)


def test_none_among_the_drafts_is_the_baseline() -> None:
    assert plan(drafts=("none", "toy")).cells() == plan(drafts=("toy",)).cells()
    assert plan(drafts=("none",)).cells() == (Cell("none", 0, 0.0, baseline="plain decoding"),)
    bench = run(new_bench(plan(drafts=("none",)), PROMPTS[:1]))
    assert len(bench.trials) == 1


def test_a_remote_pair_is_opened_per_temperature_and_rule_and_a_local_one_once() -> None:
    opened: list[Settings] = []
    build: Callable[[Settings], Pair] = Builder({}).build

    def counting(settings: Settings) -> Pair:
        opened.append(settings)
        return build(settings)

    bench = new_bench(plan(temperatures=(0.0, 1.0)), PROMPTS[:1])
    list(Sweep(bench, counting).run())
    assert sorted(s.draft for s in opened) == ["ngram", "toy"]


def _on(precision: str, blas: str) -> Callable[[Settings], Pair]:
    """Opens the toy pair as one that is computed like this."""

    def opened(settings: Settings) -> Pair:
        pair = Builder({}).build(settings)
        pair.target.capabilities = dataclasses.replace(pair.target.capabilities, precision=precision, blas=blas)
        return pair

    return opened


def test_what_computed_a_target_is_recorded_and_compared() -> None:
    """On two cores one matrix library is 1.5 times as fast as another: such a speed-up is none of the draft's."""
    slow, fast = (new_bench(plan(ks=(1,), repeats=1), PROMPTS[:1]) for _ in range(2))
    list(Sweep(slow, _on("float32", "OpenBLAS of the system")).run())
    list(Sweep(fast, _on("4 bit", "Intel MKL")).run())
    found = compare(loads(dumps(slow).encode()), loads(dumps(fast).encode())).differences
    assert found == ("precision: float32, then 4 bit", "blas: OpenBLAS of the system, then Intel MKL")
    assert compare(slow, slow).differences == ()


def test_a_sweep_that_goes_on_with_something_else_says_so() -> None:
    bench = new_bench(plan(ks=(1,)), PROMPTS)
    sweep = Sweep(bench, _on("float32", "Intel MKL"), Wait(cancelled=lambda: bool(bench.trials)))
    list(sweep.run())
    assert bench.trials and bench.missing
    del bench.machine["engine"]  # as a file of 0.2
    list(Sweep(bench, _on("float32", "OpenBLAS")).run())
    assert bench.missing == 0 and bench.machine["precision"] == "float32"
    assert bench.machine["blas"] == "Intel MKL, later OpenBLAS"
    assert bench.machine["engine"] == "not recorded, later toy"
