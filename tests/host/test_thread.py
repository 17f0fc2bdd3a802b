"""The thread that owns models: order, results, cancellation, closing."""

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from specviz.core.errors import RunError
from specviz.host.thread import OwnerThread

PATIENCE_S = 10.0


@pytest.fixture
def thread() -> Iterator[OwnerThread]:
    made = OwnerThread("owner")
    yield made
    made.close()


def test_functions_run_in_order_in_one_thread_and_give_their_results(thread: OwnerThread) -> None:
    seen: list[int] = []

    def work(n: int) -> str:
        seen.append(n)
        return f"{n} in {threading.current_thread().name}"

    futures = [thread.submit(lambda n=n: work(n)) for n in range(20)]  # type: ignore[misc]
    assert [f.result(PATIENCE_S) for f in futures] == [f"{n} in owner" for n in range(20)]
    assert seen == list(range(20))


def test_an_exception_is_the_futures_and_the_thread_lives_on(thread: OwnerThread) -> None:
    failed = thread.submit(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failed.result(PATIENCE_S)
    assert thread.submit(lambda: 7).result(PATIENCE_S) == 7


def test_what_is_queued_can_be_taken_back_and_what_runs_cannot(thread: OwnerThread) -> None:
    entered, go_on, ran = threading.Event(), threading.Event(), list[str]()

    def block() -> None:
        entered.set()
        assert go_on.wait(PATIENCE_S)

    running, queued = thread.submit(block), thread.submit(lambda: ran.append("queued"))
    assert entered.wait(PATIENCE_S)
    assert not running.cancel() and queued.cancel()
    go_on.set()
    assert thread.submit(lambda: "next").result(PATIENCE_S) == "next"
    assert running.result(PATIENCE_S) is None and ran == []
    with pytest.raises(CancelledError):
        queued.result(0)


def test_a_closed_thread_ends_behind_what_was_queued_and_takes_nothing_more() -> None:
    thread = OwnerThread("owner")
    last = thread.submit(lambda: "last")
    thread.close()
    thread.close()
    assert last.result(0) == "last" and not thread._thread.is_alive()
    with pytest.raises(RunError, match="closed"):
        thread.submit(lambda: None)
