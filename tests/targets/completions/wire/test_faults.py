import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat

import pytest
from hypothesis import HealthCheck, settings

from specviz.core.connection import Connection, Secret
from specviz.core.decoding import speculative
from specviz.core.events import Done, Error, Event, Metrics, RunStarted, VerifyResult, Way
from specviz.core.settings import Settings
from specviz.engines.toy import ToyScorer
from specviz.net.repeating import Backoff
from specviz.targets.completions.wire.transport import HttpCompletions
from tests.targets.completions.faulty_proxy import FATAL, PASSING, counted, plan, serve_faulty
from tests.targets.completions.remotes import TOY, remote_target
from tests.targets.completions.toyserver import ToyServer, serve
from tests.toys import toy_draft, toy_target

#: Examples have no time limit: the machine may be busy.
slow = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

# Draft, target and transport together, through a proxy that damages some answers.

RUNS = 100
SETTINGS = Settings(target="openai:toy", draft="toy", k=4, max_tokens=10)
PROMPT = TOY.encode("the ")
#: A run that takes longer, in seconds, hangs.
HANGS = 60.0


def run(api: HttpCompletions, toy: ToyServer, way: Way, seed: int = 0) -> list[Event]:
    target = remote_target(toy, way, api=api)
    return list(speculative(toy_draft(), target, PROMPT, SETTINGS, seed=seed))


def emitted(events: list[Event]) -> tuple[int, ...]:
    """Ids of all finished rounds."""
    return tuple(e.final_token_id for e in events if isinstance(e, VerifyResult) and e.final_token_id is not None)


def connection(url: str, read_s: float = 0.3, patience_s: float = 30.0) -> Connection:
    return Connection(Secret(url), url, Secret("sk-planted"), 5.0, read_s, patience_s)


def quiet(url: str, read_s: float = 0.3) -> HttpCompletions:
    quick = Backoff(0.001, 0.004, 0.001, 6)
    return HttpCompletions(
        connection(url, read_s), "toy", on_progress=lambda p: None, cancelled=lambda: False, backoff=quick
    )


def expected() -> Done:
    last = list(speculative(toy_draft(), toy_target(), PROMPT, SETTINGS, seed=0))[-1]
    assert isinstance(last, Done)
    return last


def plans(seed: int) -> Iterator[str]:
    """Every tenth run has a network that mostly fails."""
    return plan(seed, 0.8, 0.02) if seed % 10 == 9 else plan(seed)


def test_a_hundred_runs_over_a_bad_network_finish_or_end_in_an_error_and_keep_their_tokens() -> None:
    right = expected()
    ways: tuple[Way, ...] = ("scoring", "prefixes", "generating")
    toy = ToyServer(ToyScorer(TOY), "vllm", TOY)
    ends: list[str] = []
    current: Iterator[str] = iter(())
    with serve(toy) as upstream, serve_faulty(upstream, _latest(lambda: current)) as (raw, happened):
        api = quiet(raw.url)
        pool = ThreadPoolExecutor(1)
        try:
            for seed in range(RUNS):
                current = plans(seed)
                events = pool.submit(run, api, toy, ways[seed % 3], seed).result(timeout=HANGS)
                ends.append(_checked(events, right))
        finally:
            pool.shutdown(wait=False)
            api.close()
    assert ends.count("done") > RUNS * 0.7 and "AnswerError" in ends and "UnreachableError" in ends
    assert all(counted(happened)[fault] for fault in (*PASSING, *FATAL)), counted(happened)
    assert not [t for t in threading.enumerate() if t.name == "specviz-call"]


def _latest(current: object) -> Iterator[str]:
    while True:
        yield next(current())  # type: ignore[operator]


def _checked(events: list[Event], right: Done) -> str:
    """How a run ended, after all its events were checked."""
    first, *middle, last = events
    assert isinstance(first, RunStarted) and not any(isinstance(e, Done | Error) for e in middle)
    ids = emitted(events)
    assert ids == right.token_ids[: len(ids)]
    rounds = [e for e in middle if isinstance(e, Metrics)]
    assert sum(m.emitted for m in rounds) == len(ids)
    assert all(m.requests and m.sent_bytes and m.received_bytes for m in rounds)
    if isinstance(last, Done):
        assert (last.token_ids, last.generated_text) == (right.token_ids, right.generated_text)
        return "done"
    assert isinstance(last, Error) and last.kind in ("AnswerError", "UnreachableError")
    assert last.message and last.remedy and "sk-planted" not in repr(last)
    return last.kind


@pytest.mark.parametrize("fault", PASSING)
def test_a_repeated_call_is_counted(fault: str) -> None:
    toy = ToyServer(ToyScorer(TOY), "vllm", TOY)
    faults = chain([fault], repeat(""))
    with serve(toy) as upstream, serve_faulty(upstream, faults) as (raw, happened):
        api = quiet(raw.url, read_s=1.0 if fault == "stall" else 30.0)
        events = run(api, toy, "prefixes")
        api.close()
    first = next(e for e in events if isinstance(e, Metrics))
    # A slow answer is not a fault.
    assert happened == [fault] and first.requests == (1 if fault == "slow" else 2)
    assert first.split.queue_ms is None or (first.split.queue_ms > 0) == (fault != "slow")
    assert len(raw.got) == sum(e.requests or 0 for e in events if isinstance(e, Metrics))
    assert isinstance(events[-1], Done)


@pytest.mark.parametrize("fault", ["stall", "reset_before"])
def test_a_run_that_is_stopped_while_it_waits_keeps_its_tokens(fault: str) -> None:
    toy = ToyServer(ToyScorer(TOY), "vllm", TOY)
    stop, waiting = threading.Event(), threading.Event()

    def faults() -> Iterator[str]:
        yield from ("", "")
        waiting.set()
        yield from repeat(fault)

    with serve(toy) as upstream, serve_faulty(upstream, faults()) as (raw, _):
        long = Backoff(30.0, 30.0, 0.0, 6)
        api = HttpCompletions(
            connection(raw.url, 60.0, 300.0), "toy", on_progress=lambda p: None, cancelled=stop.is_set, backoff=long
        )
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run, api, toy, "prefixes")
            assert waiting.wait(HANGS)
            stop.set()
            events = running.result(timeout=20)
        api.close()
    last = events[-1]
    assert isinstance(last, Done) and last.finish_reason == "stopped"
    assert last.token_ids == emitted(events) == expected().token_ids[: len(last.token_ids)] and last.total_rounds == 2
