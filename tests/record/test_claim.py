"""One writer of a file at a time (hermes-agent#12684): the second is told who has it, a killed one blocks nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specviz.core.errors import RunError
from specviz.core.settings import Settings
from specviz.record.claim import claimed
from specviz.record.trace import TraceWriter, read

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys, time
from pathlib import Path
from specviz.record.claim import claimed
with claimed(Path(sys.argv[1]), "a test"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_told_who_has_the_file_and_a_killed_one_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "made for it" / "run.json"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(RunError, match=f"run.json is being written by a test, process {other.pid}, since ") as held:
            with claimed(path, "me"):
                pass
        assert held.value.remedy
        other.send_signal(signal.SIGKILL)
    for _ in range(2):
        with claimed(path, "me"):
            pass
    assert os.listdir(path.parent) == []


def test_two_names_of_one_file_are_one_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with claimed(tmp_path / "file", "me"), pytest.raises(RunError), claimed(tmp_path / "link", "you"):
        pass


def test_a_device_can_have_several_writers() -> None:
    with claimed(Path(os.devnull), "me"), claimed(Path(os.devnull), "you"):
        pass


def test_a_second_trace_leaves_the_first_as_it_is(tmp_path: Path) -> None:
    path, settings = tmp_path / "run.jsonl", Settings(target="toy", seed=1)
    with TraceWriter(path, settings):
        with pytest.raises(RunError, match="is being written by"), TraceWriter(path, Settings(target="toy", seed=2)):
            pass
    assert read(path).header["settings"] == settings.to_json() and os.listdir(tmp_path) == ["run.jsonl"]
