"""The baseline is plain decoding, measured; stops do not shorten it."""

import dataclasses
import threading
from collections.abc import Generator, Sequence
from itertools import cycle
from typing import Any

import pytest

from specviz.core import baseline, decoding
from specviz.core.decoding import autoregressive
from specviz.core.errors import RefusedError, RunError, StoppedError
from specviz.core.pair import Pair
from specviz.core.ports import Arrival
from specviz.core.settings import Sampling, Settings
from specviz.core.wait import Progress, Wait
from specviz.drafters.none import NoDrafter
from specviz.engines.toy import ToyModel
from specviz.targets.local import LocalTarget
from specviz.targets.simulated_network import SimulatedNetwork
from tests.toys import TOKENIZER, FixedScorer, LetterTokenizer, local_target, toy_target


def test_it_decodes_plainly_past_stops_and_reports_progress() -> None:
    seen: list[Progress] = []
    target = local_target("stops", FixedScorer([0.1, 0.9]), LetterTokenizer(), 2, 999, frozenset({0, 1}))
    found = baseline.measure(target, [0], Settings(temperature=1.0), Wait(seen.append), tokens=12)
    assert found.complete and found.tokens_per_second
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 12, 12)


def test_the_first_token_with_its_prefill_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    class Slow(FixedScorer):
        calls = 0

        def score(self, token_ids, rows):  # type: ignore[no-untyped-def]
            self.calls += 1
            now[0] += 100.0 if self.calls == 1 else 0.5
            return super().score(token_ids, rows)

    real = decoding.autoregressive
    monkeypatch.setattr("specviz.core.baseline.autoregressive", lambda *a, **kw: real(*a, **kw, clock=lambda: now[0]))
    target = local_target("slow", Slow([0.5, 0.5]), LetterTokenizer(), 2, 99)
    assert baseline.measure(target, [0], Settings(), tokens=8).tokens_per_second == pytest.approx(2.0)


def test_a_short_context_still_gives_what_fits() -> None:
    assert baseline.measure(toy_target(max_context=3), [0, 1], Settings()) == baseline.Baseline(None, False)
    some = baseline.measure(toy_target(max_context=9), [0, 1], Settings())
    assert some.tokens_per_second and not some.complete


def test_cancelling_ends_it() -> None:
    asked = iter(range(99))
    found = baseline.measure(toy_target(), [0], Settings(), Wait(cancelled=lambda: next(asked) > 5))
    assert found == baseline.Baseline(None, False), "a measurement that was cut short is none"


def test_a_failing_target_is_an_error() -> None:
    class Gone(FixedScorer):
        def score(self, token_ids, rows):  # type: ignore[no-untyped-def]
            raise RunError("gone", "try later")

    target = local_target("gone", Gone([1.0]), LetterTokenizer(), 1, 99)
    with pytest.raises(RunError, match="baseline failed: gone"):
        baseline.measure(target, [0], Settings())


class Served(LocalTarget):
    """A toy that streams: `pieces` as (seconds, tokens)."""

    def __init__(self, pieces: Sequence[tuple[float, int | None]], fails: Exception | None = None) -> None:
        super().__init__("served", ToyModel())
        self.pieces, self.fails = pieces, fails
        self.asked: list[tuple[list[int], Sampling, int]] = []
        self.closed = 0
        self.texts = [""]

    def stream_plain(self, context_ids: Sequence[int], sampling: Sampling, max_tokens: int) -> Generator[Arrival]:
        self.asked.append((list(context_ids), sampling, max_tokens))
        try:
            yield from (Arrival(*piece, text) for piece, text in zip(self.pieces, cycle(self.texts), strict=False))
            if self.fails:
                raise self.fails
        finally:
            self.closed += 1


def evenly(count: int | None, pieces: int, every_s: float = 0.5) -> list[tuple[float, int | None]]:
    return [(100 + every_s * i, count) for i in range(pieces)]


def measured(*arguments: Any, **options: Any) -> baseline.Baseline:
    return baseline.measure(Served(*arguments), [0, 1], Settings(temperature=0.7), **options)


def test_a_target_that_streams_has_two_baselines() -> None:
    seen: list[Progress] = []
    target = Served(evenly(1, 33))
    found = baseline.measure(target, [0, 1], Settings(temperature=0.7, top_k=5), Wait(seen.append))
    assert found.tokens_per_second == pytest.approx(2.0) and found.complete
    assert found.per_call_tps and found.per_call_tps != found.tokens_per_second
    assert target.asked == [([0, 1], Sampling(0.7, 5), 33)] and target.closed == 1
    last = {p.what: (p.done, p.total) for p in seen}
    assert last == {"Measuring plain decoding, streamed": (32, 32), "Measuring one call per token": (8, 8)}


def test_pieces_of_several_tokens_are_counted_by_tokens() -> None:
    assert measured([(0.0, 3), (1.0, 4), (2.0, 4)]).tokens_per_second == pytest.approx(4.0)


def test_a_sum_at_the_end_counts_the_tokens_behind_the_first() -> None:
    found = measured([*evenly(None, 17), (150.0, 33)])
    assert found.tokens_per_second == pytest.approx(32 / 8.0), "the time at which the sum came is no token's"
    assert found.complete


@pytest.mark.parametrize(
    "pieces", [[], evenly(1, 1), evenly(None, 9), [(0.0, None), (0.0, 9)], [(1.0, 1), (1.0, 1)], [(0.0, 0), (1.0, 0)]]
)
def test_a_stream_that_cannot_be_counted_is_replaced_by_single_calls(pieces: list[tuple[float, int | None]]) -> None:
    found = measured(pieces)
    assert found.complete and found.tokens_per_second == found.per_call_tps and found.per_call_tps


def test_single_calls_end_with_the_answer() -> None:
    target = Served(evenly(1, 33))
    target.capabilities = dataclasses.replace(target.capabilities, stop_ids=frozenset(range(TOKENIZER.vocab_size)))
    found = baseline.measure(target, [0, 1], Settings())
    assert found.tokens_per_second == pytest.approx(2.0) and found.per_call_tps is None and not found.complete


def test_a_server_that_cannot_stream_has_one_baseline() -> None:
    found = measured([], RefusedError("no streams here", "", 400))
    assert found.tokens_per_second == found.per_call_tps and found.per_call_tps


def test_an_answer_that_ended_early_stands_for_its_own_prompt_only() -> None:
    found = measured(evenly(1, 9))
    assert found.tokens_per_second == pytest.approx(2.0) and not found.complete


def test_cancelling_a_stream_closes_it() -> None:
    target, asked = Served(evenly(1, 33)), iter(range(99))
    found = baseline.measure(target, [0, 1], Settings(), Wait(cancelled=lambda: next(asked) > 5))
    assert found == baseline.Baseline(None, False) and target.closed == 1
    assert measured([], StoppedError("stopped"), wait=Wait(cancelled=lambda: True)) == baseline.Baseline(None, False)


def test_the_stream_fits_the_context() -> None:
    target = Served(evenly(1, 5))
    target.capabilities = dataclasses.replace(target.capabilities, max_context=12)
    baseline.measure(target, [0, 1], Settings())
    assert target.asked[0][2] == 10


def test_the_kind_of_a_baseline_says_how_it_was_measured() -> None:
    assert baseline.measure(toy_target(), [0], Settings()).kind == "separate_run"
    assert measured(evenly(1, 33)).speeds.kind == "streaming"
    assert measured([]).speeds.kind == "per_call"
    assert baseline.Baseline(None, False).speeds.kind is None, "nothing was measured"


class Counting:
    """Counts the measurements of each target."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.speed = 10.0
        for name in ("measure", "measure_calls", "check"):
            monkeypatch.setattr(baseline, name, self._counting(name, getattr(baseline, name)))

    def _counting(self, name: str, real: Any) -> Any:
        def measure(*arguments: Any, **options: Any) -> baseline.Baseline:
            self.calls.append(name)
            return baseline.Baseline(self.speed, True)

        return measure


def test_baselines_are_kept_by_target_address_and_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    counting, kept = Counting(monkeypatch), baseline.Baselines()
    for temperature in (0.0, 0.7):
        for where in ("http://a", "http://b", "", "http://a"):
            kept.of(Pair(NoDrafter(), toy_target(), where), [0], Settings(temperature=temperature), Wait())
    assert counting.calls == ["measure", "measure", "measure", "check"] * 2


def test_single_calls_are_kept_by_network_and_plain_decoding_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    counting, kept = Counting(monkeypatch), baseline.Baselines()
    for network in ((80.0, 0.0), (80.0, 20.0), (80.0, 0.0)):
        kept.of(Pair(NoDrafter(), SimulatedNetwork(toy_target(), *network)), [0], Settings(), Wait())
    kept.of(Pair(NoDrafter(), toy_target()), [0], Settings(), Wait())
    assert [call for call in counting.calls if call != "check"] == ["measure", "measure_calls", "measure_calls"]


def test_a_baseline_that_was_cut_short_is_measured_again() -> None:
    kept, pair = baseline.Baselines(), Pair(NoDrafter(), toy_target())
    assert kept.of(pair, [0], Settings(), Wait(cancelled=lambda: True)).tokens_per_second is None
    assert kept.of(pair, [0], Settings(), Wait()).tokens_per_second


class Late:
    """A simulated network in front of the toy that records its delays instead of waiting."""

    def __init__(self, rtt_ms: float = 400.0) -> None:
        self.slept: list[float] = []
        self.target = SimulatedNetwork(toy_target(stop_ids=frozenset()), rtt_ms, pause=self.pause, clock=self.clock)
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)

    @property
    def round_trips(self) -> float:
        return sum(self.slept) / (self.target.capabilities.simulated_rtt_ms / 1000)


def test_behind_a_simulated_network_there_are_two_and_only_single_calls_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    late, real, seen = Late(), decoding.autoregressive, list[Progress]()

    def ticks() -> float:
        late.now += 0.001
        return late.now

    monkeypatch.setattr("specviz.core.baseline.autoregressive", lambda *a, **kw: real(*a, **kw, clock=ticks))
    found = baseline.measure(late.target, [0, 1], Settings(temperature=0.7), Wait(seen.append))
    assert late.round_trips == pytest.approx(9), "eight that count, and the first"
    assert found.complete and found.tokens_per_second and found.per_call_tps
    assert 1 / found.per_call_tps - 1 / found.tokens_per_second == pytest.approx(0.4)
    last = {p.what: (p.done, p.total) for p in seen}
    assert last == {"Measuring plain decoding": (32, 32), "Measuring one call per token": (8, 8)}


def test_single_calls_through_a_network_go_past_stop_tokens() -> None:
    late = Late()
    limits = dataclasses.replace(late.target.capabilities, stop_ids=frozenset(range(TOKENIZER.vocab_size)))
    late.target.capabilities = late.target.near.capabilities = limits
    found = baseline.measure(late.target, [0], Settings())
    assert found.complete and found.per_call_tps


def test_cancelling_while_it_waits_ends_the_measurement() -> None:
    stop = threading.Event()
    target = SimulatedNetwork(toy_target(), 3_600_000, cancelled=stop.is_set)

    def seen(progress: Progress) -> None:
        if progress.what == "Measuring one call per token":
            stop.set()

    found = baseline.measure(target, [0], Settings(), Wait(seen, stop.is_set))
    assert found == baseline.Baseline(None, False)


def test_half_a_pair_of_baselines_stands_for_its_own_prompt_only() -> None:
    whole, part = baseline.Baseline(20.0, True), baseline.Baseline(4.0, False)
    assert baseline.both(whole, part) == baseline.Baseline(20.0, False, 4.0)
    assert baseline.both(part, whole) == baseline.Baseline(4.0, False, 20.0)
    assert baseline.both(whole, whole).complete


class Busy(FixedScorer):
    """A model that takes the time that the test says for each pass."""

    def __init__(self, seconds: float) -> None:
        super().__init__([0.4, 0.6])
        self.seconds, self.now, self.passes = seconds, 0.0, 0

    def score(self, token_ids, rows):  # type: ignore[no-untyped-def]
        self.now += self.seconds
        self.passes += 1
        return super().score(token_ids, rows)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Busy:
    model, real = Busy(1 / 5.6), autoregressive
    monkeypatch.setattr(baseline, "autoregressive", lambda *a, **kw: real(*a, **kw, clock=lambda: model.now))
    return model


def test_a_baseline_of_a_busy_moment_is_not_used_for_a_run_in_a_quiet_one(busy: Busy) -> None:
    kept, pair = baseline.Baselines(lambda: busy.now), Pair(NoDrafter(), local_target("m", busy, LetterTokenizer(), 2))
    assert kept.of(pair, [0], Settings(), Wait()).tokens_per_second == pytest.approx(5.6)
    for rate in (18.5, 5.6):
        busy.seconds = 1 / rate
        found = kept.of(pair, [0], Settings(), Wait())
        assert found.tokens_per_second == pytest.approx(rate) and found.age_s == 0, "measured again"


def test_a_baseline_of_the_same_conditions_is_kept_after_a_look_and_says_its_age(busy: Busy) -> None:
    now = [0.0]
    kept, pair = baseline.Baselines(lambda: now[0]), Pair(NoDrafter(), local_target("m", busy, LetterTokenizer(), 2))
    first = kept.of(pair, [0], Settings(), Wait())
    before, now[0], busy.seconds = busy.passes, 90.0, busy.seconds * 1.1
    again = kept.of(pair, [0, 1], Settings(), Wait())
    assert again.tokens_per_second == first.tokens_per_second and busy.passes - before == baseline.CHECKED + 1
    assert (again.age_s, again.speeds.age_s) == (90.0, 90.0)
    now[0] = baseline.OLDEST_S + 1
    assert kept.of(pair, [0], Settings(), Wait()).age_s == 0, "an old one is measured again"


def test_a_server_is_not_asked_again_until_its_baseline_is_old() -> None:
    now, target = [0.0], Served(evenly(1, 33))
    kept, pair = baseline.Baselines(lambda: now[0]), Pair(NoDrafter(), target)
    for now[0], asked in ((0.0, 1), (500.0, 1), (601.0, 2), (1000.0, 2)):
        found = kept.of(pair, [0], Settings(), Wait())
        assert len(target.asked) == asked and found.tokens_per_second == pytest.approx(2.0)
    assert found.age_s == pytest.approx(399.0)


def test_a_network_is_measured_again_with_what_is_behind_it(busy: Busy) -> None:
    near = local_target("m", busy, LetterTokenizer(), 2)
    far = SimulatedNetwork(near, 100.0, pause=lambda s: setattr(busy, "now", busy.now + s), clock=lambda: busy.now)
    kept = baseline.Baselines(lambda: busy.now)
    slow = kept.of(Pair(NoDrafter(), far), [0], Settings(), Wait()).per_call_tps
    busy.seconds = 1 / 18.5
    fast = kept.of(Pair(NoDrafter(), far), [0], Settings(), Wait()).per_call_tps
    assert slow and fast and 1 / fast == pytest.approx(0.1 + 1 / 18.5) and 1 / slow == pytest.approx(0.1 + 1 / 5.6)
