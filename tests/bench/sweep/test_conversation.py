"""Prompts that go on with a conversation: earlier turns and the target's own answers stand before them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from specviz.bench.forecast.predict import predict
from specviz.bench.suites.loaders import read_suite
from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep import sweep
from specviz.bench.sweep.cell import run_cell
from specviz.bench.sweep.compare import compare
from specviz.bench.sweep.conversation import Conversations
from specviz.bench.sweep.plan import Cell, SweepPlan
from specviz.bench.sweep.results import Bench, Trial
from specviz.bench.sweep.rows import rows_of
from specviz.bench.sweep.sweep import Sweep, new_bench
from specviz.core.decoding import autoregressive
from specviz.core.errors import SettingsError
from specviz.core.events import Done
from specviz.core.pair import Pair
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait
from specviz.setup.builder import Builder
from tests.toys import TOKENIZER, toy_target

TOY = Settings(target="toy", draft="none", max_tokens=16)
FIRST, SECOND, THIRD = "the draft proposes", "and then", "so that it"
TURNS = (
    BenchPrompt("1/1", "talk", FIRST),
    BenchPrompt("1/2", "talk", SECOND, before=(FIRST,)),
    BenchPrompt("1/3", "talk", THIRD, before=(FIRST, SECOND)),
)


def plan(**changes: object) -> SweepPlan:
    return dataclasses.replace(SweepPlan(TOY, drafts=("toy", "ngram"), ks=(1, 4)), **changes)  # type: ignore[arg-type]


def run(bench: Bench, **changes: object) -> Bench:
    list(Sweep(bench, Builder({}).build, **changes).run())  # type: ignore[arg-type]
    return bench


def written(prompt: str) -> Done:
    events = autoregressive(toy_target(), TOKENIZER.encode(prompt), TOY, seed=0)
    return next(e for e in events if isinstance(e, Done))


def texts() -> tuple[str, str]:
    one = written(FIRST).generated_text
    return one, written(f"{FIRST}\n{one}\n{SECOND}").generated_text


@pytest.mark.parametrize("temperatures", [(0.0,), (0.8, 0.0)])
def test_the_answers_are_the_targets_own_and_all_cells_are_asked_the_same(
    temperatures: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[int, set[tuple[int, ...]]] = {}

    def spy(pair: Pair, plan: SweepPlan, cell: Cell, key: Any, ids: list[int], **more: Any) -> Trial:
        asked.setdefault(key[1], set()).add(tuple(ids))
        return run_cell(pair, plan, cell, key, ids, **more)

    # The toy looks at two tokens only: its answers do not show what was in front of them.
    monkeypatch.setattr(sweep, "run_cell", spy)
    one, two = texts()
    bench = run(new_bench(plan(temperatures=temperatures), TURNS))
    assert bench.answers == {1: (one,), 2: (one, two)} and bench.missing == 0
    whole = (FIRST, f"{FIRST}\n{one}\n{SECOND}", f"{FIRST}\n{one}\n{SECOND}\n{two}\n{THIRD}")
    assert asked == {i: {tuple(TOKENIZER.encode(text))} for i, text in enumerate(whole)}


def test_nothing_is_written_twice_also_when_another_day_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = Conversations._write

    def spy(self: Any, pair: Pair, settings: Settings, question: str, before: Any) -> str:
        asked.append(question)
        return original(self, pair, settings, question, before)

    monkeypatch.setattr(Conversations, "_write", spy)
    bench = new_bench(plan(), TURNS)
    run(bench, wait=Wait(cancelled=lambda: len(bench.trials) >= 13))
    assert 0 < bench.missing < bench.total and sorted(asked) == [SECOND, FIRST]
    again = Bench.from_json(json.loads(json.dumps(bench.to_json())))
    assert again.answers == bench.answers and again.prompts == TURNS
    run(again)
    assert again.missing == 0 and len(asked) == 2


def test_an_answer_is_told_of_token_by_token() -> None:
    told: list[Progress] = []
    bench = run(new_bench(plan(), TURNS[1:2]), wait=Wait(told.append))
    answering = [p for p in told if p.what.startswith("Answering")]
    assert answering and answering[-1].done == len(written(FIRST).token_ids) and answering[-1].unit == "tokens"
    assert bench.missing == 0


@pytest.mark.parametrize("at", [0, 1, 7])
def test_stopped_while_it_answers_nothing_is_kept_half(at: int) -> None:
    told: list[Progress] = []
    bench = new_bench(plan(), TURNS[2:])
    run(bench, wait=Wait(told.append, lambda: sum(p.what.startswith("Answering") for p in told) > at))
    assert bench.trials == [] and bench.answers == {} and bench.failures == []
    run(bench)
    assert bench.missing == 0 and bench.answers == {0: texts()}


def test_a_conversation_that_does_not_fit_is_left_out_by_its_reason() -> None:
    long = BenchPrompt("2/2", "talk", SECOND, before=(" the" * 5000,))
    bench = run(new_bench(plan(), [*TURNS, long]))
    assert bench.left_out.keys() == {3} and "4096" in bench.left_out[3] and bench.missing == 0


def test_a_prediction_follows_the_same_conversation() -> None:
    bench = run(new_bench(plan(), TURNS))
    found = predict(plan(), TURNS, Builder({}).build)
    measured = {(r.cell.draft, r.cell.k): r.tokens_per_round for r in rows_of(bench) if r.cell.baseline is None}
    assert {(r.draft, r.k): r.tokens_per_round for r in found.rows} == pytest.approx(measured)


def test_behind_a_simulated_network_it_is_the_same() -> None:
    bench = new_bench(plan(settings=dataclasses.replace(TOY, simulated_rtt_ms=1.0), drafts=("toy",)), TURNS[:2])
    run(bench)
    assert bench.answers == {1: texts()[:1]}


@pytest.mark.parametrize(
    "answers",
    [{"0": ["x"]}, {"1": []}, {"1": ["x", "y"]}, {"7": ["x"]}, {"1": "x"}, {"1": [None]}, {"a": ["x"]}, ["x"], None],
)
def test_answers_that_fit_no_turn_are_refused(answers: object) -> None:
    data = new_bench(plan(), TURNS).to_json() | {"answers": answers}
    with pytest.raises(SettingsError, match="damaged"):
        Bench.from_json(data)


def test_a_file_from_before_there_were_conversations_can_be_read() -> None:
    data = run(new_bench(plan(), TURNS[:1])).to_json()
    del data["answers"], data["prompts"][0]["before"]
    assert Bench.from_json(data).missing == 0


def test_prompts_with_other_turns_before_them_are_other_prompts() -> None:
    one, other = run(new_bench(plan(), TURNS[1:2])), run(new_bench(plan(), [BenchPrompt("1/2", "talk", SECOND)]))
    assert any("0 of them the same" in line for line in compare(one, other).differences)
    assert not any("prompts" in line for line in compare(one, one).differences)


def test_a_question_of_spec_bench_from_the_file_to_the_figures(tmp_path: Any) -> None:
    path = tmp_path / "question.jsonl"
    path.write_text(json.dumps({"question_id": 81, "category": "writing", "turns": [FIRST, SECOND]}) + "\n")
    bench = run(new_bench(plan(), read_suite(path).suite.prompts))
    assert [p.id for p in bench.prompts] == ["81/1", "81/2"] and bench.answers == {1: texts()[:1]}
