"""`specviz predict` as a person types it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specviz.cli import main
from tests.processes import ended

ROOT = Path(__file__).parent.parent.parent
TOY = ["predict", "--target", "toy", "--draft", "toy", "ngram", "none", "--k", "2", "4", "--max-tokens", "24"]
FEW = ["--per-domain", "1", "--limit", "3"]


def test_a_table_a_sentence_and_predicted_beside_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "p.json"
    assert main([*TOY, *FEW, "--temperature", "0", "0.8", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert lines[0].split()[:3] == ["DRAFT", "K", "T"] and sum(line.startswith("plain decoding") for line in lines) == 2
    assert sum(line.startswith("T = ") for line in lines) == 2 and "From 6 texts written by the target" in text
    data = json.loads(out.read_text())
    assert data["schema"] == "specviz.predict/1" and len(data["rows"]) == 10
    assert len(data["confirmed"]) == 4
    greedy = [c for c in data["confirmed"] if c["predicted"]["temperature"] == 0]
    assert [c["off"] for c in greedy] == [0.0, 0.0] and text.count("+0.0%") >= 2


def test_json_is_one_object_and_runs_nothing_live(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TOY, *FEW, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert "confirmed" not in data and data["texts"] == 3 and data["ranking"][0]["words"]
    assert main([*TOY, *FEW, "--json", "--confirm"]) == 0
    assert len(json.loads(capsys.readouterr().out)["confirmed"]) == 2


def test_without_confirmation_there_is_the_table_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TOY, *FEW, "--no-confirm"]) == 0
    assert "RUN LIVE" not in capsys.readouterr().out


def test_answers_of_a_file_may_be_followed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("prompt,answer\nthe draft reads,and the draft writes and the draft writes\n")
    assert main([*TOY, "--suite", str(path), "--given", "--no-confirm"]) == 0
    assert "From 1 texts given" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--target", "openai:x"], "Whole distributions are needed"),
        (["--k", "0"], "K must be a whole number from 1 to 16"),
        (["--draft", "nonsense:x"], "Unknown draft"),
        (["--draft", "none"], "Plain decoding alone"),
        (["--draft", "toy", "toy"], "named twice"),
        (["--per-domain", "0"], "at least 1"),
        (["--out", "/no/such/folder/p.json"], "Cannot write"),
        (["--suite", "missing.jsonl"], "missing.jsonl"),
    ],
)
def test_bad_input_is_refused_before_any_work(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TOY, *more]) == 2
    captured = capsys.readouterr()
    assert said in captured.err and not captured.out and "writes" not in captured.err


def test_ctrl_c_ends_it_without_a_half_done_table() -> None:
    many = [*TOY, "--max-tokens", "1024", "--temperature", "0.5", "0.6", "0.7", "0.8", "0.9", "1"]
    command = [sys.executable, "-m", "specviz", *many]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT) as process, ended(process):
        assert process.stderr is not None
        assert any("Predicting" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and not out and "Stopping" in err
