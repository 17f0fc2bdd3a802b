"""A prediction has the figures that a sweep would measure, in a small part of the time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from unittest.mock import Mock

import numpy as np
import pytest

from specviz.bench.forecast.confirm import confirm
from specviz.bench.forecast.follow import Expected, FollowedBlock, expect, kept_in_text
from specviz.bench.forecast.forecast import Prediction
from specviz.bench.forecast.predict import predict
from specviz.bench.suites.suite import BenchPrompt, builtin
from specviz.bench.sweep.plan import SweepPlan
from specviz.bench.sweep.rows import rows_of
from specviz.bench.sweep.sweep import Sweep, new_bench
from specviz.core.decoding import autoregressive
from specviz.core.errors import IncapableError, SettingsError, StoppedError
from specviz.core.events import Done
from specviz.core.noise import derived_seed
from specviz.core.pair import Pair
from specviz.core.ports import Drafter, Scorer, Target
from specviz.core.sampling import Logits, row_of, to_probs
from specviz.core.settings import RuleName, Settings
from specviz.core.wait import Progress, Wait
from specviz.drafters.model import ModelDrafter
from specviz.drafters.ngram import NgramDrafter
from specviz.drafters.none import NoDrafter
from specviz.engines.toy import ToyScorer
from specviz.targets.simulated_network import SimulatedNetwork
from tests.toys import (
    TOKENIZER,
    LetterTokenizer,
    MarkovScorer,
    combined_draft,
    local_target,
    markov_target,
    toy_draft,
    toy_target,
)

STOPS = TOKENIZER.stop_ids
DRAFTS = ("toy", "ngram", "ngram+toy", "none")
PROMPTS = builtin().first(1, 4).prompts
MAKERS: dict[str, Callable[[], Drafter]] = {
    "toy": lambda: toy_draft(stop_ids=STOPS),
    "ngram": lambda: NgramDrafter(stop_ids=STOPS),
    "ngram+toy": lambda: combined_draft(shortest=2, stop_ids=STOPS),
    "none": NoDrafter,
}


def open_toy(settings: Settings) -> Pair:
    return Pair(MAKERS[settings.draft](), toy_target())


def plan_of(
    drafts: Sequence[str] = DRAFTS,
    ks: Sequence[int] = (1, 3, 8),
    temperatures: Sequence[float] = (0.0,),
    rules: Sequence[RuleName] = ("probabilistic",),
    max_tokens: int = 40,
    **more: object,
) -> SweepPlan:
    settings = Settings(target="toy", draft="toy", max_tokens=max_tokens, **more)  # type: ignore[arg-type]
    return SweepPlan(settings, tuple(drafts), tuple(ks), tuple(temperatures), tuple(rules))


# Counts.


def test_at_temperature_0_every_row_is_the_one_of_the_sweep() -> None:
    plan = plan_of()
    found = predict(plan, PROMPTS, open_toy)
    bench = new_bench(plan, PROMPTS)
    assert list(Sweep(bench, open_toy).run())
    measured = {(row.cell.draft, row.cell.k): row for row in rows_of(bench) if row.cell.baseline is None}
    predicted = {(row.draft, row.k): row for row in found.rows if row.draft != "none"}
    assert measured.keys() == predicted.keys() and len(measured) == 9
    for key, row in measured.items():
        told = predicted[key]
        assert told.rounds == row.rounds
        assert told.acceptance == row.acceptance
        assert told.accepted_per_round == row.accepted_per_round
        assert told.tokens_per_round == row.tokens_per_round
        assert told.tokens_per_round_interval == row.tokens_per_round_interval is not None
        assert told.reached[: len(row.reached)] == row.reached and told.kept[: len(row.kept)] == row.kept
    assert found.tokens == next(row.tokens for row in rows_of(bench) if row.cell.baseline)


def test_all_rules_are_one_at_temperature_0_and_differ_above_it() -> None:
    rules: tuple[RuleName, ...] = ("probabilistic", "deterministic", "greedy", "threshold")
    found = predict(plan_of(("toy", "ngram"), (4,), (0.0, 0.9), rules), PROMPTS, open_toy)
    rows = {(r.draft, r.temperature, r.rule): r.tokens_per_round for r in found.rows}
    assert len({rows["toy", 0.0, rule] for rule in rules}) == 1
    assert len({rows["toy", 0.9, rule] for rule in rules}) == 4
    # Always the most probable token: the text of temperature 0, and n-grams of that.
    assert rows["ngram", 0.9, "greedy"] == rows["ngram", 0.0, "greedy"] != rows["ngram", 0.9, "probabilistic"]
    assert found.texts == len(PROMPTS) * 3


def test_plain_decoding_has_one_row_and_is_what_all_is_compared_with() -> None:
    found = predict(plan_of(("none", "ngram"), (2, 4)), PROMPTS, open_toy)
    [plain] = [row for row in found.rows if row.draft == "none"]
    assert (plain.k, plain.tokens_per_round, plain.speedup, plain.acceptance) == (0, 1.0, 1.0, None)
    assert plain.verify_ms == found.plain_ms[0.0]


# A given text.

P = [[0.8 if j == (i + 1) % 10 else 0.2 / 9 for j in range(10)] for i in range(10)]
Q = [[0.6 if j == (i + 1 + (i == 4)) % 10 else 0.4 / 9 for j in range(10)] for i in range(10)]


def open_letters(settings: Settings) -> Pair:
    return Pair(ModelDrafter("toy", MarkovScorer(Q), LetterTokenizer()), markov_target(P))


def given_letters(answer: str, temperature: float = 0.0) -> Prediction:
    plan = plan_of(("toy",), (1, 4), (temperature,), max_tokens=12)
    return predict(plan, [BenchPrompt("1", "x", "abc", answer)], open_letters, given=True)


def test_the_targets_own_text_may_be_given_as_well() -> None:
    own = predict(plan_of(("toy",), (1, 4), max_tokens=12), [BenchPrompt("1", "x", "abc")], open_letters)
    given = given_letters("defghijabcde")
    assert [r.tokens_per_round for r in own.rows] == [r.tokens_per_round for r in given.rows]
    assert own.rows[1].tokens_per_round != 5 and own.written_ms and not given.written_ms and given.given


def test_on_a_given_text_the_probabilities_are_those_of_any_token() -> None:
    """Everything is "a" behind an "a": the target wants a "b" each time, and so does the draft."""
    [one, four] = given_letters("aaaaaaaaaaaa").rows
    assert (one.acceptance, four.acceptance) == (1.0, 1.0)
    [one, _] = given_letters("aaaaaaaaaaaa", 1.0).rows
    assert one.acceptance == pytest.approx(np.minimum(P[0], Q[0]).sum())


def test_a_given_text_is_cut_to_the_budget_and_may_not_be_missing() -> None:
    assert given_letters("a" * 99).tokens == 12
    with pytest.raises(SettingsError, match="Prompt 1 has no answer"):
        given_letters("")


# Times, on a clock that only the models move.


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


class Timed(Scorer):
    """A scorer that takes so many ms a pass, and so many more a row."""

    def __init__(self, noise: float, clock: Clock, per_pass: float, per_row: float) -> None:
        self._scorer, self._clock = ToyScorer(TOKENIZER, noise), clock
        self._per_pass, self._per_row = per_pass, per_row

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        self._clock.wait((self._per_pass + self._per_row * rows) / 1000)
        return self._scorer.score(token_ids, rows)

    def reset(self) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


def timed(clock: Clock, network: float = 0.0) -> Callable[[Settings], Pair]:
    def open_pair(settings: Settings) -> Pair:
        scorer = Timed(0.0, clock, 80.0, 20.0)
        target: Target = local_target("toy", scorer, TOKENIZER, TOKENIZER.vocab_size, 4096, STOPS)
        if network:
            target = SimulatedNetwork(target, network, pause=clock.wait, clock=clock)
        drafter: Drafter = MAKERS[settings.draft]()
        if settings.draft == "toy":
            drafter = ModelDrafter("toy", Timed(0.8, clock, 7.0, 3.0), TOKENIZER, stop_ids=STOPS)
        return Pair(drafter, target)

    return open_pair


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("network", [0.0, 50.0])
def test_a_speed_up_is_plain_time_over_the_time_of_a_round(clock: Clock, temperature: float, network: float) -> None:
    plan = plan_of(("toy", "ngram", "none"), (1, 4, 6), (temperature,))
    found = predict(plan, PROMPTS, timed(clock, network), clock=clock)
    assert found.plain_ms[temperature] == pytest.approx(100.0)
    assert found.written_ms[temperature] == pytest.approx(100.0)
    for row in found.rows[1:]:
        assert row.drafted_per_round is not None and row.tokens_per_round is not None
        assert row.draft_ms is not None and row.verify_ms is not None
        assert row.draft_ms == pytest.approx(10.0 * row.drafted_per_round if row.draft == "toy" else 0.0)
        assert row.verify_ms == pytest.approx(network + 100.0 + 20.0 * row.drafted_per_round)
        assert row.speedup == pytest.approx(100.0 * row.tokens_per_round / (row.draft_ms + row.verify_ms))


def test_the_prediction_equals_the_measurement(clock: Clock) -> None:
    plan = plan_of(("toy", "ngram", "none"), (1, 2, 4, 8))
    found = predict(plan, PROMPTS, timed(clock), clock=clock)
    confirmed = confirm(found, PROMPTS, timed(clock), clock=clock)
    assert [c.predicted.draft for c in confirmed] == ["toy", "ngram"]
    for c in confirmed:
        assert c.off == 0.0 and c.measured.cell.k == c.predicted.k
        # A measured run leaves its first round out.
        assert c.predicted.speedup == pytest.approx(c.measured.speedup, rel=0.05)
        assert json.dumps(c.to_json(), allow_nan=False)


def test_it_costs_little_more_than_the_texts(clock: Clock) -> None:
    plan = plan_of(("toy", "ngram", "ngram+toy", "none"), (1, 2, 3, 4, 6, 8))
    prompts = builtin().first(1).prompts
    found = predict(plan, prompts, timed(clock), clock=clock)
    bench = new_bench(plan, prompts)
    for _ in Sweep(bench, timed(clock), clock=clock).run():
        pass
    assert found.seconds < 0.15 * bench.seconds
    assert found.writing_s + found.timing_s <= found.seconds


# What goes wrong.


def test_a_server_is_refused_before_it_is_called() -> None:
    def never(settings: Settings) -> Pair:
        raise AssertionError("opened")

    plan = SweepPlan(Settings(target="openai:x", draft="ngram"), ("ngram",), (4,))
    with pytest.raises(IncapableError, match="Whole distributions are needed.*Run the sweep"):
        predict(plan, PROMPTS, never)


class Opaque:
    """A target without a scorer, and a drafter that cannot be followed."""

    def __init__(self, inner: Target | Drafter) -> None:
        for name in ("name", "capabilities", "tokenizer", "guarantee", "verify", "reset", "propose", "max_context"):
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))


def test_targets_and_drafts_that_cannot_be_followed_are_refused_and_closed() -> None:
    closed: list[str] = []
    opaque: list[tuple[Drafter, Target]] = [
        (toy_draft(), Opaque(toy_target())),  # type: ignore[list-item]
        (Opaque(toy_draft()), toy_target()),  # type: ignore[list-item]
    ]
    for drafter, target in opaque:
        with pytest.raises(IncapableError):
            pair = Pair(drafter, target, "", lambda: closed.append("x"))
            predict(plan_of(("toy",)), PROMPTS, Mock(return_value=pair))
    assert closed == ["x", "x"]


@pytest.mark.parametrize("after", [0, 1, 60, 125, 300])
def test_cancelled_it_gives_nothing_and_closes_all(after: int) -> None:
    calls, closed = [0], [0]

    def cancelled() -> bool:
        calls[0] += 1
        return calls[0] > after

    def close() -> None:
        closed[0] += 1

    def open_pair(settings: Settings) -> Pair:
        return Pair(MAKERS[settings.draft](), toy_target(), "", close)

    with pytest.raises(StoppedError):
        predict(plan_of(), PROMPTS, open_pair, wait=Wait(cancelled=cancelled))
    assert closed == [4]


def test_prompts_that_do_not_fit_are_left_out_by_name() -> None:
    prompts = [*PROMPTS[:2], BenchPrompt("long", "x", " the" * 5000), BenchPrompt("empty", "x", " ")]
    found = predict(plan_of(), prompts, open_toy)
    assert found.left_out.keys() == {"long", "empty"} and "4096" in found.left_out["long"] and found.texts == 2
    with pytest.raises(SettingsError, match="No prompt can be followed.*4096"):
        predict(plan_of(), prompts[2:3], open_toy)


@pytest.mark.parametrize("prompt", PROMPTS[:1])
def test_a_text_at_the_end_of_the_context_is_followed(prompt: BenchPrompt) -> None:
    size = len(TOKENIZER.encode(prompt.text)) + 5

    def open_pair(settings: Settings) -> Pair:
        return Pair(toy_draft(max_context=size - 2), toy_target(max_context=size, stop_ids=frozenset()))

    found = predict(plan_of(("toy",), (1, 8)), [prompt], open_pair)
    assert found.tokens == 5 and set(found.verify_ms[0.0]) == {0, 1}


def test_an_answer_of_a_single_token_is_followed() -> None:
    found = predict(plan_of(max_tokens=1), PROMPTS, open_toy)
    assert {row.tokens_per_round for row in found.rows} == {1.0} and {row.acceptance for row in found.rows} == {None}


def test_it_reports_its_progress() -> None:
    told: list[Progress] = []
    predict(plan_of(temperatures=(0.0, 1.0)), PROMPTS, open_toy, wait=Wait(told.append))
    words = list(dict.fromkeys(p.what for p in told))
    assert words[:2] == ["The target writes text 1 of 4, T = 0", "Following text 1 of 4, T = 0"] and len(words) == 16
    assert any(p.total == 40 and p.done == 39 for p in told)


@pytest.mark.parametrize("rule", ["probabilistic", "deterministic", "threshold"])
def test_above_temperature_0_it_is_about_the_texts_of_the_sweeps_first_repeat(rule: RuleName) -> None:
    """With the same draws; and each token of them has the chance that follows from where it stands."""
    found = predict(plan_of(("none", "toy"), (5,), (0.9,), (rule,)), PROMPTS, open_toy)
    expected = Expected()
    for number, prompt in enumerate(PROMPTS):
        settings = Settings(target="toy", draft="none", temperature=0.9, rule=rule, max_tokens=40)
        ids = TOKENIZER.encode(prompt.text)
        *_, last = autoregressive(toy_target(), ids, settings, seed=derived_seed(0, number, 0))
        assert isinstance(last, Done)
        text = [*ids, *last.token_ids]
        p, q = (
            scorer.score(text[:-1], last.total_tokens) for scorer in (ToyScorer(TOKENIZER), ToyScorer(TOKENIZER, 0.8))
        )
        chances = [
            kept_in_text(
                to_probs(p[i], settings.sampling), row_of(q[i], settings.sampling), token, settings.acceptance_rule
            )
            for i, token in enumerate(last.token_ids)
        ]
        expected.add(
            expect(
                [FollowedBlock(tuple(chances[at:]), (False,) * (len(chances) - at)) for at in range(len(chances))],
                5,
                40,
            )
        )
    assert found.tokens == expected.tokens
    assert found.rows[1].tokens_per_round == pytest.approx(expected.tokens_per_round)
    assert found.rows[1].acceptance == pytest.approx(expected.acceptance)
