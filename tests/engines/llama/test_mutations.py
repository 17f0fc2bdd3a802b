from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specviz.engines.llama.usable import problem
from tests.engines.mutations import Mutator
from tests.engines.raw_gguf import pieces_of
from tests.engines.sound_gguf import write_sound_gguf

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(bool(problem()) or sys.platform == "win32", reason=problem() or "processes are not forked here")
def test_no_damaged_file_ends_the_process(tmp_path: Path) -> None:
    """A sample; `python -m tests.benchmarks.mutations` tries more."""
    command = [sys.executable, "-m", "tests.benchmarks.mutations", "--count", "20", "--seed", "14"]
    place = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=250, env=place, check=False)
    report = json.loads(done.stdout)
    assert report["faults"] == []
    assert report["outcomes"]["decode"] > 0 and report["outcomes"]["refused"] > 10


def test_the_same_seed_gives_the_same_damage(tmp_path: Path) -> None:
    sound = pieces_of(write_sound_gguf(tmp_path / "sound.gguf"))
    draws = [Mutator(sound, f"{seed}").draw() for seed in range(40)]
    assert draws == [Mutator(sound, f"{seed}").draw() for seed in range(40)]
    assert len({data for _, data in draws}) > 35
    whole = sound.encoded()
    assert sum(data == whole for _, data in draws) < 5, "a value may be replaced by itself"
