"""Ctrl-C at any moment: also while a line is printed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: The first line that is printed is interrupted while it is written.
CODE = """
import io, os, signal, sys
from specviz.cli.terminal import stop_on_interrupt

class Raw(io.RawIOBase):
    interrupted = False

    def writable(self):
        return True

    def fileno(self):
        return 2

    def write(self, data):
        if not Raw.interrupted:
            Raw.interrupted = True
            os.kill(os.getpid(), signal.SIGINT)
        return os.write(2, data)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.stderr = io.TextIOWrapper(io.BufferedWriter(Raw()), line_buffering=True)
with stop_on_interrupt("Stopping") as stopping:
    print("a line", file=sys.stderr)
sys.exit(7 if stopping.is_set() else 3)
"""


def test_an_interrupt_in_the_middle_of_a_line_stops_in_order() -> None:
    """The handler may not print to the stream that the interrupted code is writing to."""
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 7, done.stderr
    assert "Stopping" in done.stderr and "a line" in done.stderr and "Traceback" not in done.stderr
