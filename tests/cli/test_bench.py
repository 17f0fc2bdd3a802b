"""`specviz bench` and `compare`, as a person types them, with the toy pair."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specviz.bench.sweep.results import read
from specviz.cli import main

ROOT = Path(__file__).parents[2]
PAIRS = ["--target", "toy", "--draft", "ngram", "toy", "none", "--k", "1", "2", "--max-tokens", "16"]
TOY = [*PAIRS, "--per-domain", "1"]


def bench(tmp_path: Path, *more: str, name: str = "b.json") -> int:
    return main(["bench", *TOY, "--out", str(tmp_path / name), *more])


def test_a_table_a_verdict_and_three_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, "--csv", str(tmp_path / "b.csv"), "--parquet", str(tmp_path / "b.parquet")) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split()[:3] == ["CELL", "K", "T"] and "T = 0: " in out
    assert f"Saved as {tmp_path / 'b.json'}." in err
    data = json.loads((tmp_path / "b.json").read_text())
    assert data["schema"] == "specviz.bench/1" and len(data["rows"]) == 5 and len(data["trials"]) == 5 * 8
    assert data["plan"]["settings"]["seed"] == 0 and data["machine"]["specviz"]
    rows = list(csv.DictReader((tmp_path / "b.csv").read_text().splitlines()))
    assert [(r["draft"], r["k"]) for r in rows] == [
        ("none", "0"),
        ("ngram", "1"),
        ("ngram", "2"),
        ("toy", "1"),
        ("toy", "2"),
    ]
    assert pq.read_table(tmp_path / "b.parquet").num_rows == 5
    assert read(tmp_path / "b.json").missing == 0


def test_one_json_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["complete"] is True and len(data["rows"]) == 5 and "0" in data["verdict"]


def test_two_runs_have_the_same_counts_and_can_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, name="one.json") == bench(tmp_path, name="two.json") == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "one.json"), str(tmp_path / "two.json")]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines() if line.startswith(("toy", "ngram"))]
    assert len(lines) == 4 and all(words[-3] == words[-2] and words[-1] == "no" for words in lines)
    assert "Not the same" not in out


def test_a_suite_of_ones_own_with_bad_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"prompt": "the draft"}\nnot json\n{"prompt": "a target"}\n')
    mine = ["bench", *PAIRS, "--out", str(tmp_path / "b.json"), "--suite", str(path)]
    assert main(mine) == 2
    assert "2" in (err := capsys.readouterr().err) and "--skip-bad" in err
    assert main([*mine, "--skip-bad"]) == 0
    assert len(read(tmp_path / "b.json").prompts) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--target", "toy"], "No draft is named"),
        (["--target", "toy", "--draft", "nonsense"], "nonsense"),
        (["--target", "toy", "--draft", "toy", "--k", "0"], "K must be"),
        (["--target", "toy", "--draft", "toy", "--k", "2", "2"], "named twice"),
        (["--resume", "nowhere.json"], "cannot be read"),
        (["--target", "toy", "--draft", "toy", "--out", "/proc/no/b.json", "--per-domain", "1"], "cannot be written"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_any_work(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments]) == 2
    out, err = capsys.readouterr()
    assert says in err and out == "" and not list(tmp_path.glob("*.json"))


def test_interrupted_it_keeps_what_is_done_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And meanwhile nobody else writes its file: a second run would save its own copy over the runs of the first."""
    path = tmp_path / "b.json"
    # A network that takes its time: the toy alone would be done before anybody could press a key.
    far = ["--simulated-rtt-ms", "20", "--limit", "3", "--out", str(path)]
    command = [sys.executable, "-m", "specviz", "bench", *PAIRS, *far]
    # pytest may have been started in the background, where interrupts are ignored, and a child would inherit that.
    running = subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("Measuring"):
            break
    for options in (["--resume", str(path)], [*TOY, "--out", str(path)], [*TOY, "--csv", str(path)]):
        assert main(["bench", *options, "--json"]) == 1
        assert f"{path} is being written by specviz bench, process {running.pid}, since" in capsys.readouterr().err
    os.kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "--resume" in err and "runs are still to be measured" in out
    before = read(path)
    assert 0 < before.missing <= before.total and os.listdir(tmp_path) == ["b.json"]
    ran = subprocess.run(
        [sys.executable, "-m", "specviz", "bench", "--resume", str(path), "--json"],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["complete"] is True
    after = read(path)
    assert after.missing == 0 and after.trials[: len(before.trials)] == before.trials
