"""Charts and table of a benchmark: their numbers are those of its rows, and nothing hostile is markup."""

from __future__ import annotations

import dataclasses
import json

import pytest

from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.plan import SweepPlan
from specviz.bench.sweep.results import Bench, Failure
from specviz.bench.sweep.rows import BenchRow, rows_of
from specviz.core.settings import Settings
from specviz.views.benchmark import figures
from specviz.views.benchmark.charts import NAMES, charts_of
from specviz.views.benchmark.table import duration, records
from specviz.views.palette import BAD, GOOD
from tests.bench.sweep.test_rows import trial

HOSTILE = 'model:<img src=x onerror=alert(1)>%{x}"&'


def made(*drafts: str, ks: tuple[int, ...] = (1, 4), faster: float = 2.0) -> Bench:
    plan = SweepPlan(Settings(target="toy", draft="none"), drafts or ("ngram", "toy"), ks)
    prompts = tuple(BenchPrompt(f"p{i}", "a<b>" if i < 3 else "b", "x") for i in range(6))
    runs = []
    for number, cell in enumerate(plan.cells()):
        ms = 100.0 if cell.baseline else 100.0 / faster + 3 * number
        runs += [trial(number, p, tokens=101, rounds=50, accepted=51, ms=ms + p) for p in range(6)]
    return Bench(plan, prompts, runs)


def rows() -> list[BenchRow]:
    return rows_of(made())


def test_the_map_has_every_speed_up_and_says_the_best() -> None:
    shown = figures.speculative(rows(), 0.0, "probabilistic")
    chart = figures.speed_map(shown)
    (heat,) = chart.data
    assert heat["x"] == ["1", "4"] and heat["y"] == ["ngram", "toy"]
    flat = {(r.cell.draft, str(r.cell.k)): r.speedup for r in shown}
    assert {(d, k): heat["z"][i][j] for i, d in enumerate(heat["y"]) for j, k in enumerate(heat["x"])} == flat
    assert [a["text"] for a in chart.layout["annotations"]] == [
        f"<b>{flat[d, k]:.2f}</b>" for d in heat["y"] for k in heat["x"]
    ]
    assert chart.note.startswith("best: ngram, K = 1") and not chart.bad
    assert heat["zmin"] + heat["zmax"] == pytest.approx(2.0), "colours turn where plain decoding stands"


def test_bars_are_ranked_with_their_intervals_and_judged_by_them() -> None:
    slow = figures.speed_bars(figures.speculative(rows_of(made(faster=0.5)), 0.0, "probabilistic"), "plain decoding")
    fast = figures.speed_bars(figures.speculative(rows(), 0.0, "probabilistic"), "plain decoding")
    (bars,) = fast.data
    assert bars["x"] == sorted(bars["x"]) and len(bars["x"]) == 4
    assert all(v >= 0 for side in ("array", "arrayminus") for v in bars["error_x"][side])
    assert set(bars["marker"]["color"]) == {GOOD} and set(slow.data[0]["marker"]["color"]) == {BAD}
    assert fast.layout["shapes"][0]["x0"] == 1


def test_positions_and_domains_are_those_of_the_rows() -> None:
    shown = figures.speculative(rows(), 0.0, "probabilistic")
    lines = figures.positions(shown).data
    assert [t["name"] for t in lines] == ["ngram", "toy"] and lines[0]["customdata"] == [[306, 312]]
    assert lines[0]["marker"]["symbol"] == ["circle"] and "hollow" not in figures.positions(shown).note
    bars = figures.domains(shown).data
    assert bars[0]["x"] == ["a&lt;b&gt;", "b"] and bars[0]["customdata"] == [3, 3]
    ngram = next(r for r in shown if (r.cell.draft, r.cell.k) == ("ngram", 1))
    assert bars[0]["y"] == [pytest.approx(d.speedup, abs=1e-3) for d in ngram.domains.values()]


def test_a_position_that_few_drafts_have_reached_is_hollow_and_the_note_says_so() -> None:
    row = dataclasses.replace(
        figures.speculative(rows(), 0.0, "probabilistic")[0], reached=(40, 10, 9, 0), kept=(9, 9, 9, 0)
    )
    chart = figures.positions([row])
    assert chart.data[0]["marker"]["symbol"] == ["circle", "circle", "circle-open", "circle-open"]
    assert chart.note.endswith("hollow: fewer than 10 did")


def test_before_anything_is_measured_charts_say_so() -> None:
    empty = charts_of(rows_of(Bench(made().plan, made().prompts)), 0.0, "probabilistic")
    assert tuple(empty) == NAMES
    assert {c.note for c in empty.values()} == {figures.NOTHING} and all(c.data == [] for c in empty.values())


def test_a_hostile_name_is_neither_markup_nor_a_template_field() -> None:
    charts = charts_of(rows_of(made(HOSTILE)), 0.0, "probabilistic")
    for chart in charts.values():
        said = json.dumps([chart.data, chart.layout])
        assert "<img" not in said and '%{x}\\"' not in said


def test_the_table_has_the_baseline_first_then_the_fastest() -> None:
    bench = made()
    bench.failures.append(Failure(4, "no"))
    found = records(rows_of(bench), 6)
    assert [r["Draft"] for r in found][0] == "plain decoding" and found[1]["Draft"] == "ngram"
    assert found[1]["Runs"] == "6" and {r["Runs"] for r in found} == {"6", "failed"}
    assert found[0]["Acceptance"] == "" and found[1]["Acceptance"] == "0.981"
    waiting = records(rows_of(Bench(bench.plan, bench.prompts)), 6)
    assert waiting[1]["Speed-up"] == "n/a" and waiting[1]["Runs"] == "0 of 6"


def test_many_cells_show_the_fastest_dozen() -> None:
    many = rows_of(made(*(f"model:{i}" for i in range(5)), ks=(1, 2, 3, 4)))
    chart = figures.speed_bars(figures.speculative(many, 0.0, "probabilistic"), "plain decoding")
    assert len(chart.data[0]["x"]) == 12 and "12 of 20" in chart.note


def test_rows_of_another_temperature_or_rule_are_not_shown() -> None:
    assert figures.speculative(rows(), 1.0, "probabilistic") == figures.speculative(rows(), 0.0, "greedy") == []
    plain = dataclasses.replace(made().plan, temperatures=(0.0, 1.0))
    assert len(figures.speculative(rows_of(Bench(plain, made().prompts)), 1.0, "probabilistic")) == 0


@pytest.mark.parametrize(("seconds", "said"), [(None, "n/a"), (0.4, "0 s"), (61, "1 min 1 s"), (7260, "2 h 1 min")])
def test_durations(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said
