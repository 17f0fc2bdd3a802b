"""Processes that a test starts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    """Kill a process that still runs when its test has ended: waiting for it would hide that it hangs."""
    try:
        yield
    finally:
        process.kill()
