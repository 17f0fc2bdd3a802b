"""A sweep over a server: both baselines, what it bills, and a pair per temperature and rule."""

from __future__ import annotations

import pytest

from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.plan import SweepPlan
from specviz.bench.sweep.recommendation import verdict
from specviz.bench.sweep.results import Bench
from specviz.bench.sweep.rows import rows_of
from specviz.bench.sweep.sweep import Sweep, baselines_of, new_bench
from specviz.core.decoding import autoregressive
from specviz.core.events import Done
from specviz.core.settings import Settings
from specviz.setup.builder import Builder
from tests.browser.servers import Toy, serve
from tests.toys import TOKENIZER, toy_target

PROMPTS = tuple(BenchPrompt(f"p/{i}", "all", f"the draft {i}") for i in range(2))


def sweep(
    server: Toy,
    *,
    prompts: tuple[BenchPrompt, ...] = PROMPTS,
    temperatures: tuple[float, ...] = (0.0, 1.0),
) -> Bench:
    with serve(server) as url:
        settings = Settings(
            target="openai:toy",
            draft="none",
            max_tokens=12,
            base_url=url,
            tokenizer="toy",
        )
        plan = SweepPlan(settings, ("toy", "ngram"), (2,), temperatures, baselines=baselines_of(settings))
        bench = new_bench(plan, prompts)
        list(Sweep(bench, Builder({"TARGET_BASE_URL": url}).build).run())
    return bench


def test_two_baselines_per_temperature_and_the_bill() -> None:
    bench = sweep(Toy())
    assert not bench.failures and bench.missing == 0
    rows = rows_of(bench)
    kinds = [(r.cell.baseline, r.cell.temperature) for r in rows if r.cell.baseline]
    assert kinds == [("streaming", 0.0), ("one call per token", 0.0), ("streaming", 1.0), ("one call per token", 1.0)]
    streamed, per_call, toy, _ = rows[:4]
    assert streamed.tokens_per_second and streamed.rounds == 0 and streamed.acceptance is None
    assert per_call.speedup is not None and per_call.speedup_interval is not None
    assert toy.speedup and toy.speedup_per_call and toy.billed_prompt and toy.billed_completion and toy.requests
    assert toy.same_text is None, "a stream tells no ids, and the calls end before the text does"
    assert toy.guarantee == "EXACT" and "streaming" in verdict(rows, 0.0).words


def test_a_stream_that_cannot_be_counted_leaves_the_other_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specviz.core.baseline.streamed", lambda *_: None)
    bench = sweep(Toy())
    assert {bench.plan.cells()[f.cell].baseline for f in bench.failures} == {"streaming"}
    assert all("cannot be counted" in f.message for f in bench.failures) and bench.missing == 0
    toy = rows_of(bench)[2]
    assert toy.speedup is not None and toy.speedup == toy.speedup_per_call
    assert "one call per token" in verdict(rows_of(bench), 0.0).words


def test_an_earlier_turn_is_answered_at_temperature_0_whatever_the_cells_have() -> None:
    prompts = (BenchPrompt("q/2", "all", "and then", before=(PROMPTS[0].text,)),)
    ids, settings = TOKENIZER.encode(PROMPTS[0].text), Settings(target="toy", max_tokens=12)
    done = list(autoregressive(toy_target(), ids, settings, seed=0))[-1]
    assert isinstance(done, Done)
    for temperatures in ((0.0,), (1.0,)):
        bench = sweep(Toy(), prompts=prompts, temperatures=temperatures)
        assert not bench.failures and bench.missing == 0
        assert bench.answers == {0: (done.generated_text,)}


def test_a_server_is_recorded_as_what_it_says_it_is() -> None:
    assert sweep(Toy("vllm"), temperatures=(0.0,), prompts=PROMPTS[:1]).machine["server"].startswith("vllm ")
