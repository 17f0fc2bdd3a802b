"""Processes that a test starts."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """Kill a process that still runs when its test has ended: waiting for it would hide that it hangs."""
    try:
        yield
    finally:
        process.kill()


def wait_until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Wait for another thread or process."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.02)
