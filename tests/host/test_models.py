"""Runs in the background: queueing, stopping, abandonment, failure; no model library needed."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from specviz.core import baseline
from specviz.core.connection import Secret
from specviz.core.decoding import speculative
from specviz.core.errors import DownloadError, PromptError, RunError, UnknownModelError
from specviz.core.events import Done, Error
from specviz.core.pair import Pair, PairBuilder
from specviz.core.rounds import Round, Verdict
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait
from specviz.host.models import ModelHost
from specviz.host.run import Run
from specviz.record.trace import parse
from specviz.setup.builder import Builder
from specviz.setup.validation import check
from specviz.targets.simulated_network import SimulatedNetwork

TOY = Settings(target="toy", draft="toy", max_tokens=60)


@pytest.fixture
def hosts() -> Iterator[Callable[..., ModelHost]]:
    made: list[ModelHost] = []

    def make(builder: Callable[[], PairBuilder] = Builder, **options: float) -> ModelHost:
        made.append(ModelHost(builder, check, **options))
        return made[-1]

    yield make
    for host in made:
        host.close()


def until(condition: Callable[[], bool], timeout: float = 20.0) -> None:
    """Wait on a condition with a limit."""
    ended = time.monotonic() + timeout
    wait = threading.Event()
    while not condition():
        assert time.monotonic() < ended, "timed out"
        wait.wait(0.005)


def drained(run: Run) -> Run:
    def over() -> bool:
        run.drain()
        return run.done

    until(over)
    return run


class Endless:
    """Decodes the toy without end, slowly, and counts how often caches are cleared."""

    def __init__(self) -> None:
        self.resets = 0

    def build(self, settings: Settings, *_: Any) -> Pair:
        pair = Builder().build(settings)
        target, real = pair.target, pair.target.verify

        def slow(round: Round) -> Verdict:
            threading.Event().wait(0.002)
            return real(round)

        def counted() -> None:
            self.resets += 1

        target.verify = slow  # type: ignore[method-assign]
        target.reset = counted  # type: ignore[method-assign]
        target.capabilities = dataclasses.replace(target.capabilities, stop_ids=frozenset())
        return pair


ENDLESS = Settings(target="toy", draft="ngram", max_tokens=1024, temperature=1.5)


class Blocking:
    """A builder that waits for a gate: a model that takes long to load."""

    def __init__(self) -> None:
        self.gate, self.entered, self.thread = threading.Event(), threading.Event(), ""

    def build(self, settings: Settings, wait: Wait, *_: Any) -> Pair:
        self.thread = threading.current_thread().name
        self.entered.set()
        wait.on_progress(Progress("Downloading", 3, 10, "bytes"))
        while not self.gate.wait(0.005):
            if wait.cancelled():
                raise DownloadError("The download was cancelled.")
        return Builder().build(settings)


def test_a_run_gives_all_its_events_and_its_trace(hosts: Callable[..., ModelHost]) -> None:
    run = drained(hosts().start(TOY, "the draft"))
    assert run.state.done and run.state.started and run.phase == "finished"
    assert run.state.started.baseline_tps and run.state.done.speedup
    recording = parse(run.trace_lines())
    assert recording.complete and recording.events[0] == run.state.started


def test_equal_seeds_give_equal_runs_on_one_host(hosts: Callable[..., ModelHost]) -> None:
    host = hosts()
    settings = Settings(target="toy", draft="toy", temperature=1.0, seed=0, max_tokens=40)
    first, again = (drained(host.start(settings, "the")).state.done for _ in range(2))
    assert first and again and first.token_ids == again.token_ids


def test_the_baseline_is_measured_once_per_target_and_setting(
    hosts: Callable[..., ModelHost], monkeypatch: pytest.MonkeyPatch, steady: None
) -> None:
    calls: list[float] = []
    real = baseline.measure

    def counted(*a, **kw):  # type: ignore[no-untyped-def]
        calls.append(a[2].temperature)
        return real(*a, **kw)

    monkeypatch.setattr(baseline, "measure", counted)
    host = hosts()
    for temperature in (0.0, 0.0, 0.7, 0.0):
        drained(host.start(Settings(target="toy", draft="toy", temperature=temperature, max_tokens=20), "the"))
    assert calls == [0.0, 0.7]


@pytest.mark.parametrize(
    ("settings", "prompt", "error"),
    [
        (TOY, "  ", PromptError),
        (Settings(target="nothing", draft="toy"), "hi", UnknownModelError),
        (Settings(target="toy", draft="nothing"), "hi", UnknownModelError),
        (Settings(target="local:no such model"), "hi", UnknownModelError),
    ],
)
def test_bad_input_is_refused_before_any_work(
    hosts: Callable[..., ModelHost], settings: Settings, prompt: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        hosts().start(settings, prompt)


def test_a_prompt_that_does_not_fit_is_an_error_event(hosts: Callable[..., ModelHost]) -> None:
    run = drained(hosts().start(TOY, "x" * 5000))
    assert run.state.error and "context holds" in run.state.error.message and run.state.error.remedy


def test_runs_queue_know_their_place_and_can_be_stopped_there(hosts: Callable[..., ModelHost]) -> None:
    builder = Blocking()
    host = hosts(lambda: builder)
    first, second, third = (host.start(TOY, "the") for _ in range(3))
    assert builder.entered.wait(10)
    assert [r.queue_position for r in (first, second, third)] == [0, 1, 2]
    assert first.phase == "loading" and first.progress == Progress("Downloading", 3, 10, "bytes")
    assert second.stop(), "a queued run ends at once, whatever the one before it does"
    assert third.queue_position == 1
    assert drained(second).state.done and not second.state.started
    assert second.state.done and second.state.done.finish_reason == "stopped"
    builder.gate.set()
    assert all(drained(r).state.started for r in (first, third))
    assert third.state.done and third.state.done.finish_reason != "stopped"
    assert builder.thread == "specviz-models"


def test_stop_ends_an_endless_run_from_many_threads(hosts: Callable[..., ModelHost]) -> None:
    run = hosts(Endless).start(ENDLESS, "the")
    until(lambda: run.drain() > 0)
    threads = [threading.Thread(target=run.stop) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert run.stop(10.0) and run.stop()
    done = drained(run).state.done
    assert done and done.finish_reason == "stopped" and 0 < done.total_tokens < 1024


def test_stop_ends_a_run_that_waits_for_room(hosts: Callable[..., ModelHost], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specviz.host.run._QUEUE_SIZE", 3)
    run = hosts(Endless).start(ENDLESS, "the")
    until(lambda: run.full)
    assert run.stop(10.0)
    done = drained(run).state.done
    assert done and done.finish_reason == "stopped" and done.total_tokens == len(run.state.text)


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is as fast at each run, which is not looked at: every baseline that is kept is used."""
    monkeypatch.setattr(baseline, "check", lambda *_: baseline.Baseline(None, False))
    monkeypatch.setattr(baseline, "_as_fast", lambda *_: True)


def test_every_run_starts_from_empty_caches(hosts: Callable[..., ModelHost], steady: None) -> None:
    builder = Endless()
    host = hosts(lambda: builder)
    short = dataclasses.replace(ENDLESS, max_tokens=3)
    drained(host.start(short, "the"))
    before = builder.resets
    drained(host.start(short, "the"))
    # The second run measures no baseline, so its cache was cleared for the run itself.
    assert builder.resets == before + 1


def test_stopping_a_download_is_stopped_not_failed(hosts: Callable[..., ModelHost]) -> None:
    builder = Blocking()
    run = hosts(lambda: builder).start(TOY, "the")
    assert builder.entered.wait(10)
    assert run.stop(10.0)
    drained(run)
    assert run.state.error is None and run.state.done and run.state.done.finish_reason == "stopped"


def test_a_run_that_nobody_watches_ends_itself_and_says_so(hosts: Callable[..., ModelHost]) -> None:
    host = hosts(Endless, abandoned_after_s=0.3)
    run = host.start(ENDLESS, "the")
    until(lambda: run.drain() > 0)
    assert run._finished.wait(10)
    state = drained(run).state
    assert state.error and state.error.kind == "Abandoned" and "0.3 seconds" in state.error.message
    assert state.text, "what was decoded until then is kept"


def test_an_abandoned_run_with_a_full_queue_ends_with_an_error_too(
    hosts: Callable[..., ModelHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specviz.host.run._QUEUE_SIZE", 3)
    run = hosts(Endless, abandoned_after_s=0.3).start(ENDLESS, "the")
    assert run._finished.wait(10)
    assert drained(run).state.error and run.state.error and run.state.error.kind == "Abandoned"


def test_an_abandoned_load_is_not_said_to_be_stopped(hosts: Callable[..., ModelHost]) -> None:
    builder = Blocking()
    run = hosts(lambda: builder, abandoned_after_s=0.2).start(TOY, "the")
    assert run._finished.wait(10)
    assert drained(run).state.error and run.state.error and run.state.error.kind == "Abandoned"


def test_a_baseline_next_to_the_end_of_the_context_stands_for_its_own_prompt_only(
    hosts: Callable[..., ModelHost],
) -> None:
    host = hosts()
    drained(host.start(TOY, "b" * 4090))
    assert not host._baselines._kept
    drained(host.start(TOY, "b"))
    assert len(host._baselines._kept) == 1


def test_a_full_queue_waits_for_the_consumer_and_loses_nothing(
    hosts: Callable[..., ModelHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specviz.host.run._QUEUE_SIZE", 3)
    run = hosts().start(TOY, "the")
    taken = 0
    while not run.done:
        taken += run.drain(budget=1)
    assert run.state.done and taken == len(list(run.trace_lines())) - 1
    assert run.state.done.total_tokens == len(run.state.text)


class Clocked(Blocking):
    """A clock that advances one second per step of the target, and a thousand while the queue is full."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.waited = 0.0, threading.Event()

    def build(self, *asked: Any) -> Pair:
        pair = super().build(*asked)
        real = pair.target.verify

        def verify(round: Round) -> Verdict:
            self.now += 1.0
            return real(round)

        pair.target.verify = verify  # type: ignore[method-assign]
        return pair

    def stop(self) -> threading.Event:
        builder = self

        class Stop(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                builder.now += 1000.0
                builder.waited.set()
                return super().wait(timeout)

        return Stop()


def test_a_run_that_was_paused_has_the_same_times(
    hosts: Callable[..., ModelHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = Clocked()

    def clock() -> float:
        return builder.now

    monkeypatch.setattr("specviz.core.session.speculative", lambda *a, **kw: speculative(*a, **kw | {"clock": clock}))
    monkeypatch.setattr("specviz.host.run._QUEUE_SIZE", 3)
    run = hosts(lambda: builder).start(TOY, "the draft")
    run.pace.pause()
    assert builder.entered.wait(10)
    run._stop = builder.stop()
    builder.gate.set()
    until(builder.waited.is_set)
    assert run.drain() == 1 and not run.state.nodes, "only that it has begun"
    for _ in range(2):
        builder.waited.clear()
        until(builder.waited.is_set)
    run.pace.resume()
    drained(run)
    assert run.state.done and len(run.state.rounds) > 3
    assert {m.split.wall_ms for m in run.state.rounds} == {1000.0}
    assert run.state.done.total.wall_ms == 1000.0 * len(run.state.rounds)


def test_a_paused_run_does_not_keep_the_models_from_the_next_one(hosts: Callable[..., ModelHost]) -> None:
    host = hosts()
    first, second = host.start(TOY, "the draft"), host.start(TOY, "the draft")
    first.pace.pause()
    drained(second)
    assert first.phase == "finished" and not first.done and second.state.done
    first.pace.resume()
    assert drained(first).state.done and first.rounds_computed == len(first.state.rounds)


def test_a_paused_run_that_nobody_looks_at_ends_itself(
    hosts: Callable[..., ModelHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specviz.host.run._QUEUE_SIZE", 3)
    run = hosts(Endless, abandoned_after_s=0.3).start(ENDLESS, "the")
    run.pace.pause()
    until(lambda: run.drain() > 0)
    assert run._finished.wait(10)


def test_a_bug_is_an_error_event_and_the_host_lives_on(
    hosts: Callable[..., ModelHost], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        calls = 0

        def build(self, settings: Settings, *_: Any) -> Pair:
            self.calls += 1
            if self.calls == 1:
                raise ZeroDivisionError("oops")
            if self.calls == 2:
                raise RunError("no", "do this")
            return Builder().build(settings)

    host = hosts(Broken)
    assert drained(host.start(TOY, "the")).state.error == Error(
        "InternalError", "ZeroDivisionError: oops", "This is a bug in specviz: please report it."
    )
    assert "oops" in caplog.text
    assert drained(host.start(TOY, "the")).state.error == Error("RunError", "no", "do this")
    assert isinstance(drained(host.start(TOY, "the")).state.done, Done)


def test_closing_stops_everything_and_leaves_no_thread(hosts: Callable[..., ModelHost]) -> None:
    host = hosts(Endless)
    run = host.start(ENDLESS, "the")
    until(lambda: run.drain() > 0)
    host.close()
    host.close()
    assert not host._thread._thread.is_alive() and run.stop()
    assert drained(run).state.done and run.state.finish_reason == "stopped"
    with pytest.raises(RunError, match="closed"):
        host.start(TOY, "the")


def test_fifty_runs_leave_one_thread(hosts: Callable[..., ModelHost]) -> None:
    host = hosts()
    before = threading.active_count()
    for _ in range(50):
        drained(host.start(Settings(target="toy", draft="ngram", max_tokens=5), "the"))
    assert threading.active_count() == before


class Served:
    """The toy like a target behind a server: records its key, its wait, and when it is closed."""

    def __init__(self, where: str = "http://one") -> None:
        self.where, self.closed = where, 0
        self.keys: list[str | None] = []
        self.waiting, self.go_on = threading.Event(), threading.Event()
        self.go_on.set()

    def build(self, settings: Settings, wait: Wait, key: Secret | None = None) -> Pair:
        self.keys.append(key.value if key else None)
        pair = Builder().build(settings)
        real = pair.target.verify

        def verify(round: Round) -> Verdict:
            if not self.go_on.is_set():
                wait.on_progress(Progress("The server is busy: waiting", 0, 3, "steps"))
                self.waiting.set()
                assert self.go_on.wait(10)
                wait.on_progress(Progress(""))
                if self.keys[-1] == "fails-with-it":
                    raise RunError(f"refused {self.keys[-1]}")
            return real(round)

        pair.target.verify = verify  # type: ignore[method-assign]
        return dataclasses.replace(pair, where=self.where, close=self.close)

    def close(self) -> None:
        self.closed += 1


def test_a_key_opens_the_target_and_is_gone_with_the_run(hosts: Callable[..., ModelHost]) -> None:
    served = Served()
    host = hosts(lambda: served)
    run = drained(host.start(TOY, "the draft", key=Secret("sk-planted-0123")))
    assert served.keys == ["sk-planted-0123"] and served.closed == 1
    drained(host.start(TOY, "the draft"))
    assert served.keys == ["sk-planted-0123", None] and served.closed == 2
    assert run.key is None
    assert "planted" not in repr(vars(run)) + repr(vars(host)) + "".join(run.trace_lines())


def test_a_key_in_an_event_is_struck_out_before_anybody_sees_it(hosts: Callable[..., ModelHost]) -> None:
    served = Served()
    run = hosts(lambda: served).start(
        Settings(target="toy", draft="toy", system="x"), "the", key=Secret("fails-with-it")
    )
    served.go_on.clear()
    until(served.waiting.is_set)
    served.go_on.set()
    drained(run)
    assert run.state.error and "refused [secret]" in run.state.error.message
    assert "fails-with-it" not in "".join(run.trace_lines()) and served.closed == 1


def test_waits_within_a_run_are_shown_and_then_gone(hosts: Callable[..., ModelHost], steady: None) -> None:
    served = Served()
    host = hosts(lambda: served)
    drained(host.start(TOY, "the"))  # measures the baseline
    served.go_on.clear()
    run = host.start(TOY, "the")
    until(served.waiting.is_set)
    assert run.phase == "running" and run.progress == Progress("The server is busy: waiting", 0, 3, "steps")
    seen: list[Progress | None] = []
    real = run.report

    def report(progress: Progress) -> None:
        real(progress)
        seen.append(run.progress)

    run.report = report  # type: ignore[method-assign]
    served.go_on.set()
    drained(run)
    assert run.state.done and run.progress is None


def test_baselines_of_one_name_at_two_addresses_are_two(hosts: Callable[..., ModelHost], steady: None) -> None:
    served = Served()
    host = hosts(lambda: served)
    for where in ("http://one", "http://two", "http://one"):
        served.where = where
        drained(host.start(TOY, "the"))
    assert [where for _, where, *_ in host._baselines._kept] == ["http://one", "http://two"]


def far(rtt_ms: float, jitter_ms: float = 0.0, **options: Any) -> Settings:
    settings = dataclasses.replace(TOY, max_tokens=12, **options)
    return dataclasses.replace(settings, simulated_rtt_ms=rtt_ms, simulated_jitter_ms=jitter_ms)


def test_a_run_behind_a_simulated_network_differs_in_its_times_alone(
    hosts: Callable[..., ModelHost], steady: None
) -> None:
    host = hosts()
    here, there = (drained(host.start(far(rtt, temperature=1.0), "the")).state for rtt in (0.0, 5.0))
    assert here.done and there.done and here.done.token_ids == there.done.token_ids
    assert here.started and there.started
    assert (here.baseline, there.baseline) == ("plain decoding", "plain decoding without the network")
    assert here.started.per_call_tps is None and (there.started.per_call_tps or 0) < 200
    assert here.started.baseline_tps == there.started.baseline_tps, "measured once"
    assert all(m.split.network_ms == 0 for m in here.rounds)
    assert all((m.split.network_ms or 0) >= 5 and m.split.other_ms >= 0 for m in there.rounds)
    assert there.done.baseline_tps == there.started.baseline_tps


def test_what_is_measured_without_the_network_stands_for_every_network(
    hosts: Callable[..., ModelHost], monkeypatch: pytest.MonkeyPatch, steady: None
) -> None:
    measured: list[str] = []
    for what in ("measure", "measure_calls"):
        real = getattr(baseline, what)

        def noted(*args: Any, what: str = what, real: Callable[..., Any] = real, **options: Any) -> Any:
            measured.append(what)
            return real(*args, **options)

        monkeypatch.setattr(baseline, what, noted)
    host = hosts()
    for settings in (far(1.0), far(1.0), far(2.0), far(2.0, 1.0), far(0.0), far(2.0)):
        drained(host.start(settings, "the"))
    assert measured == ["measure", "measure_calls", "measure_calls", "measure_calls"]


def test_stop_ends_a_run_that_waits_for_the_simulated_network(hosts: Callable[..., ModelHost]) -> None:
    entered = threading.Event()

    class Far:
        def build(self, settings: Settings, wait: Wait, *_: Any) -> Pair:
            pair = Builder().build(settings)

            def asked() -> bool:
                entered.set()
                return wait.cancelled()

            # Far longer than the time limit of the test: the run ends only if the wait is cancelled.
            return dataclasses.replace(pair, target=SimulatedNetwork(pair.target, 3_600_000, cancelled=asked))

    run = hosts(Far).start(TOY, "the")
    assert entered.wait(20)
    assert run.stop(20.0)
    done = drained(run).state.done
    assert done and done.finish_reason == "stopped" and run.state.error is None


def test_a_test_of_a_model_goes_past_the_simulated_network(hosts: Callable[..., ModelHost]) -> None:
    asked: list[Settings] = []

    class Noted:
        def build(self, settings: Settings, *_: Any) -> Pair:
            asked.append(settings)
            return Builder().build(settings)

    host = hosts(Noted)
    for what in ("target", "draft"):
        check = host.test(what, far(2000, 1000))
        assert check._finished.wait(20) and check.result and not check.error
    assert [(s.simulated_rtt_ms, s.simulated_jitter_ms) for s in asked] == [(0, 0), (0, 0)]
