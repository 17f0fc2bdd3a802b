"""The edges of the process: closed, full and unread streams, odd encodings, signals at any moment: no traceback."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specviz.cli.terminal import COLOURS, painted
from specviz.core import process
from specviz.core.decoding import speculative
from specviz.core.settings import Settings
from specviz.record.trace import TraceWriter
from tests.toys import TOKENIZER, toy_draft, toy_target

ROOT = Path(__file__).parents[2]
REPLAY = '"$PYTHON" -m specviz replay run.jsonl'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short recording."""
    made = tmp_path_factory.mktemp("edges")
    settings = Settings(target="toy", draft="toy", max_tokens=8)
    with TraceWriter(made / "run.jsonl", settings) as writer:
        for event in speculative(toy_draft(), toy_target(), TOKENIZER.encode("the draft"), settings, seed=0):
            writer.write(event)
    return made


def shell(command: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT), **more}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60, env=environment
    )
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        # Closed (wsgidav#141): nobody wants it.
        (f"{REPLAY} >&- 2>&- <&-", 0, "", ""),
        # What cannot be said on standard error neither goes to standard output nor changes the exit code.
        ('"$PYTHON" -m specviz replay none.jsonl 2>&-', 2, "", ""),
        (f"{REPLAY} 2>/dev/full", 0, "target", ""),
        ('"$PYTHON" -m specviz replay none.jsonl 2> >(exit); exit $?', 2, "", ""),
        # A reader that has what it wanted.
        (f"{REPLAY} | head -n 1; exit ${{PIPESTATUS[0]}}", 0, "target", ""),
        # A full disk, also for the help.
        (f"{REPLAY} >/dev/full", 1, "", "error: Standard output cannot be written: No space left on device."),
        ('"$PYTHON" -m specviz --help >/dev/full', 1, "", "Standard output cannot be written: No space left"),
        (f"{REPLAY} 1</dev/null", 1, "", "Standard output cannot be written: Bad file descriptor."),
    ],
)
def test_a_stream_that_cannot_be_written_is_said_or_does_not_matter(
    folder: Path, command: str, code: int, out: str, err: str
) -> None:
    done = shell(command, folder)
    assert done.returncode == code, done.stderr
    assert (out in done.stdout if out else not done.stdout) and err in done.stderr


def test_a_file_does_not_get_the_number_of_a_closed_stream(folder: Path) -> None:
    """Otherwise what is printed to the stream would be in the file."""
    writing = '"$PYTHON" -m specviz generate --prompt the --target toy --draft toy --max-tokens 4 --no-baseline'
    done = shell(f'{writing} --trace closed.jsonl >&- 2>&- && "$PYTHON" -m specviz replay closed.jsonl --json', folder)
    assert done.returncode == 0 and '"finish_reason": "max_tokens"' in done.stdout


def test_an_encoding_that_lacks_characters_gets_escapes_also_in_the_help(folder: Path) -> None:
    done = shell('"$PYTHON" -m specviz generate --help', folder, PYTHONIOENCODING="ascii", LC_ALL="POSIX")
    assert done.returncode == 0 and "\\u03c4 of the rule" in done.stdout


def test_a_terminal_without_control_codes_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    main, other = pty.openpty()
    with os.fdopen(other, "w") as terminal, os.fdopen(main):
        monkeypatch.setenv("TERM", "xterm")
        assert painted("a", "accepted", terminal) == f"\x1b[{COLOURS['accepted']}ma\x1b[0m"
        monkeypatch.setenv("TERM", "dumb")
        assert painted("a", "accepted", terminal) == "a"


#: Starts the command as `python -m` does, after a line that arranges for the signal.
START = """
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
number = int(sys.argv.pop(1))
def come(*_):
    os.kill(os.getpid(), number)
{when}
runpy.run_module("specviz", run_name="__main__", alter_sys=True)
"""
LOADING = """
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "specviz.cli.replay":
            come()
sys.meta_path.insert(0, Finder())
"""
RUNNING = """
import specviz.record.trace
specviz.record.trace.read = come
"""
#: Python cannot raise an exception there: it prints a traceback and goes on.
CALLBACK = """
import specviz.record.trace, weakref
class Thing: ...
def read(path):
    thing = Thing()
    watched = weakref.ref(thing, come)
    del thing
    raise SystemExit("it went on")
specviz.record.trace.read = read
"""
ENDING = "import atexit; atexit.register(come)"


@pytest.mark.parametrize(
    ("when", "number"),
    [(LOADING, signal.SIGINT), (LOADING, signal.SIGHUP), (RUNNING, signal.SIGTERM)],
    ids=["loading", "loading, hung up", "running"],
)
def test_a_signal_ends_it_with_a_word_and_its_exit_code(when: str, number: signal.Signals) -> None:
    assert _signalled(when, number) == ("stopped\n", 128 + number)


@pytest.mark.parametrize("when", [CALLBACK, ENDING], ids=["in a callback", "at the end"])
def test_an_interrupt_where_nothing_can_be_raised_ends_it_too(when: str) -> None:
    err, code = _signalled(when, signal.SIGINT)
    assert err.endswith("stopped\n") and code == 130


def _signalled(when: str, number: signal.Signals) -> tuple[str, int]:
    command = [sys.executable, "-c", START.format(when=when), str(int(number)), "replay", "none.jsonl"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
    return done.stderr, done.returncode


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As SIGHUP under `nohup`."""
    err, code = _signalled("signal.signal(number, signal.SIG_IGN)" + LOADING, signal.SIGHUP)
    assert code == 2 and "none.jsonl" in err and "stopped" not in err


@pytest.mark.parametrize("moment", ["parser", "main"])
def test_an_interrupt_before_a_command_has_begun_is_no_traceback(
    moment: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from specviz import __main__, cli

    def interrupted(*arguments: object) -> int:
        process.interrupt(signal.SIGHUP)

    before = process.on_signals(signal.SIG_DFL)
    monkeypatch.setattr(cli, moment, interrupted)
    try:
        assert __main__.main() == 129
    finally:
        process.restore(before)
    assert capfd.readouterr().err == "stopped\n"
