"""A benchmark among the jobs of the host: queued, paused, stopped, saved, and without a key in what it leaves."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.job import BenchJob
from specviz.bench.sweep.plan import SweepPlan
from specviz.bench.sweep.results import Bench, Failure, dumps, read, write
from specviz.bench.sweep.sweep import new_bench
from specviz.core.connection import Secret
from specviz.core.errors import RunError
from specviz.core.pair import Pair
from specviz.core.settings import Settings
from specviz.core.wait import Wait
from specviz.host.job import Job
from specviz.host.models import ModelHost
from specviz.ui.catalog import AppCatalog

PATIENCE_S = 60.0
TOY = Settings(target="toy", draft="none", max_tokens=16)
PROMPTS = tuple(BenchPrompt(f"p/{i}", "all", f"the draft {i}") for i in range(3))


@pytest.fixture
def host() -> Iterator[ModelHost]:
    made = AppCatalog().make_host()
    yield made
    made.close()


def bench(**settings: object) -> Bench:
    return new_bench(SweepPlan(dataclasses.replace(TOY, **settings), ("toy", "ngram"), (2,)), PROMPTS)  # type: ignore[arg-type]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def start(host: ModelHost, made: Bench, path: Path | None = None, key: Secret | None = None) -> BenchJob:
    job = BenchJob(made, host, path, key)
    host.enqueue(job)
    return job


def test_it_measures_all_and_saves_it(host: ModelHost, tmp_path: Path) -> None:
    job = start(host, bench(), tmp_path / "deep" / "b.json")
    until(lambda: not job.live)
    assert job.error is None and job.bench.missing == 0 and not job.unsaved
    assert read(tmp_path / "deep" / "b.json") == job.snapshot()
    assert job.key is None


def test_stopped_it_keeps_what_is_done_and_another_job_continues(host: ModelHost, tmp_path: Path) -> None:
    job = start(host, bench(simulated_rtt_ms=20.0), tmp_path / "b.json")
    until(lambda: len(job.bench.trials) >= 2)
    waiting = start(host, bench())
    assert waiting.queue_position == 1
    assert job.stop(PATIENCE_S)
    assert job.error is None and job.bench.missing > 0
    assert read(tmp_path / "b.json").trials == job.snapshot().trials
    until(lambda: not waiting.live)
    assert waiting.bench.missing == 0


def test_resumed_twice_no_run_is_lost(host: ModelHost, tmp_path: Path) -> None:
    """Two tabs have the same saved benchmark: the second is refused, and later reads what the first has measured."""
    path, saved = tmp_path / "b.json", bench(simulated_rtt_ms=5.0)
    write(dumps(saved), path)
    copy = read(path)
    first = start(host, read(path), path)
    with pytest.raises(RunError, match=f"{path} is being written by the Benchmark page, process {os.getpid()}"):
        start(host, copy, path)
    until(lambda: not first.live)
    assert len(read(path).trials) == saved.total
    second = start(host, copy, path)
    assert second.stop(PATIENCE_S) and len(read(path).trials) == saved.total


def test_a_job_that_waits_has_its_file_and_one_that_was_withdrawn_has_not(host: ModelHost, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    running = start(host, bench(simulated_rtt_ms=50.0))
    waiting = start(host, bench(), path)
    with pytest.raises(RunError, match="is being written by"):
        start(host, bench(), path)
    assert waiting.stop(1.0)
    assert start(host, bench(), path).stop(1.0)
    running.stop()


def test_stopped_while_it_waits_it_ends_at_once(host: ModelHost) -> None:
    first = start(host, bench(simulated_rtt_ms=50.0))
    second = start(host, bench())
    assert second.stop(1.0) and second.error is None and second.bench.trials == []
    assert first.live
    first.stop()


def test_paused_it_waits_between_runs(host: ModelHost) -> None:
    job = start(host, bench(simulated_rtt_ms=5.0))
    until(lambda: len(job.bench.trials) >= 1)
    job.pause()
    until(lambda: job.progress is not None and job.progress.what == "Paused")
    done = len(job.bench.trials)
    assert job.paused and job.live and done < job.bench.total
    job.resume()
    until(lambda: not job.live)
    assert job.bench.missing == 0


def test_a_paused_one_can_be_stopped(host: ModelHost) -> None:
    job = start(host, bench(simulated_rtt_ms=5.0))
    job.pause()
    until(lambda: job.progress is not None and job.progress.what == "Paused")
    assert job.stop(PATIENCE_S)


def test_a_file_that_cannot_be_written_is_reported_and_loses_nothing(host: ModelHost, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    job = start(host, bench(), tmp_path / "file" / "b.json")
    until(lambda: not job.live)
    assert "cannot be written" in job.unsaved and job.bench.missing == 0 and job.error is None


class _Telling:
    """A builder whose server repeats the key in an error."""

    def build(self, settings: Settings, wait: Wait = Wait(), key: Secret | None = None) -> Pair:
        assert key is not None
        raise RunError(f"Refused: {key.value}", f"Not {key.value}.")


def test_a_key_is_in_no_file_and_no_failure(tmp_path: Path) -> None:
    host = ModelHost(_Telling, lambda _: None)
    job = start(host, bench(), tmp_path / "b.json", Secret("sk-very-secret"))
    until(lambda: not job.live)
    host.close()
    assert job.bench.failures and "sk-very-secret" not in (tmp_path / "b.json").read_text()
    assert all("sk-very-secret" not in f.message + f.remedy for f in job.bench.failures)


class _Watched(list[Failure]):
    """What a page that looks all the time would see."""

    def __init__(self) -> None:
        self.seen: list[Failure] = []

    def append(self, failure: Failure) -> None:
        self.seen.append(failure)
        super().append(failure)


def test_a_key_is_never_seen_in_a_failure_not_even_for_a_moment() -> None:
    host, made, watched = ModelHost(_Telling, lambda _: None), bench(), _Watched()
    made.failures = watched
    job = start(host, made, key=Secret("sk-very-secret"))
    until(lambda: not job.live)
    host.close()
    assert watched.seen and all("sk-very-secret" not in f.message + f.remedy for f in watched.seen)


class _Alone:
    """A queue with nothing in it."""

    def position(self, job: Job) -> int:
        return 0

    def withdraw(self, job: Job) -> None: ...


def test_a_snapshot_shares_nothing_that_the_sweep_changes() -> None:
    job = BenchJob(bench(), _Alone())
    snapshot = job.snapshot()
    for name in ("trials", "failures", "left_out", "answers"):
        assert getattr(snapshot, name) is not getattr(job.bench, name), name


def test_a_snapshot_does_not_change(host: ModelHost) -> None:
    job = start(host, bench(simulated_rtt_ms=3.0))
    seen: list[int] = []

    def look() -> None:
        while job.live:
            found = job.snapshot()
            seen.append(len(found.trials))
            found.to_json()

    looking = threading.Thread(target=look)
    looking.start()
    until(lambda: not job.live)
    looking.join(PATIENCE_S)
    assert seen == sorted(seen) and job.bench.missing == 0
