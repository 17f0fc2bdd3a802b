"""`specviz distill` and `specviz acceptance` from the command line."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specviz.cli import main
from specviz.cli.distill import NewsPrinter, duration
from specviz.core.wait import Progress
from specviz.distill.writing import Learned, Wrote
from tests.processes import ended

ROOT = Path(__file__).parent.parent.parent
SHORT = ["--tokens", "2500", "--steps", "3", "--max-tokens", "30"]


def test_a_toy_is_distilled_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "draft")
    assert main(["distill", "--target", "toy", "--out", folder, *SHORT]) == 0
    out, err = capsys.readouterr()
    assert "held-out acceptance" in out and f"wrote {folder}" in out
    assert re.search(r"writing   \d+ texts, \d+ tokens, .* left in all", err)
    assert re.search(
        r"training  step \d, [\d,]+ tokens.*, acceptance 0\.\d+ at T=0, 0\.\d+ at T=0\.8, [\d:]+ left", err
    )

    arguments = ["acceptance", "--draft", f"model:{folder}", "--target", "toy", "--max-tokens", "20"]
    assert main(arguments) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["DOMAIN", "T", "ACCEPTANCE", "LENGTH", "TOKENS", "TEXTS"]
    assert [row.split()[:2] for row in table[1:]] == [["toy", "0"], ["all", "0"], ["toy", "0.8"], ["all", "0.8"]]

    assert main([*arguments, "--json", "--temperature", "1"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["complete"] is True and data["acceptance"][-1]["domain"] == "all"
    assert 0 < data["acceptance"][-1]["acceptance"] < 1 and data["acceptance"][-1]["temperature"] == 1.0

    # A distilled draft is a draft like any other.
    assert main(["generate", "--prompt", " the draft", "--target", "toy", "--draft", f"model:{folder}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["guarantee"] == "EXACT"
    assert main(["distill", "--target", "toy", "--out", folder, *SHORT]) == 2
    assert "holds a finished draft" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "nothing"], "There is no model"),
        (["--target", "cerebras:llama"], "distributions are needed"),
        (["--minutes", "0"], "--minutes must be from"),
        (["--minutes", "nan"], "--minutes must be from"),
        (["--vocab", "3"], "--vocab must be from 16"),
        (["--bits", "7"], "invalid choice"),
        (["--layers", "a,b"], "numbers with commas"),
        (["--seed", "-1"], "--seed must be from 0"),
        (["--tokens", "0"], "--tokens must be from 1"),
        (["--learning-rate", "inf"], "--learning-rate must be"),
        (["--prompts", "no/such/file"], "Cannot read the prompts"),
        (["--out", "."], "folder for the draft alone"),
        (["--out", __file__], "is a file"),
    ],
)
def test_bad_input_is_exit_code_2_and_leaves_nothing(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["distill", "--target", "toy", "--out", str(tmp_path / "draft"), *arguments]
    try:
        code = main(base)
    except SystemExit as exc:  # argparse's own refusal
        code = int(exc.code or 0)
    assert code == 2 and words in capsys.readouterr().err
    assert not (tmp_path / "draft").exists()


def test_a_bad_line_of_prompts_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.txt").write_bytes(b"fine\n\xff\n")
    base = ["--target", "toy", "--prompts", str(tmp_path / "p.txt")]
    assert main(["distill", "--out", str(tmp_path / "draft"), *base]) == 2
    assert "line 2" in capsys.readouterr().err
    assert main(["acceptance", "--draft", "toy", *base]) == 2
    assert "line 2" in capsys.readouterr().err


def test_ctrl_c_makes_a_draft_of_what_there_is(tmp_path: Path) -> None:
    folder = tmp_path / "draft"
    command = [sys.executable, "-m", "specviz", "distill", "--target", "toy", "--out", str(folder), "--tokens", "2500"]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as run,
        ended(run),
    ):
        assert run.stderr is not None and run.stdout is not None
        for line in run.stderr:
            if line.startswith("training"):
                run.send_signal(signal.SIGINT)
                break
        err, out = run.stderr.read(), run.stdout.read()
        assert run.wait(60) == 130
    assert "Making a draft of what there is" in err
    assert "stopped before its time: the same command continues it" in out
    assert (folder / "draft.json").exists() and (folder / ".work" / "checkpoint.safetensors").exists()


def test_on_a_terminal_one_line_is_rewritten() -> None:
    class Terminal:
        def __init__(self) -> None:
            self.text = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            self.text += text
            return len(text)

        def flush(self) -> None:
            pass

    terminal = Terminal()
    printer = NewsPrinter(terminal)  # type: ignore[arg-type]
    printer(Progress("Loading", 0, 2))
    printer(Wrote(3, 400, 80.2, 3700))
    printer(Learned(5, 6000, 2.5, {0.0: 0.1, 0.8: 0.25}, 59.6))
    printer(Learned(6, 7000, 2.25, None, 1.2))
    lines = re.split(r"\r\x1b\[K|\n", terminal.text)
    assert "writing   3 texts, 400 tokens, 80 tokens/s, 1:01:40 left in all" in lines
    assert "training  step 5, 6,000 tokens, loss 2.500, acceptance 0.100 at T=0, 0.250 at T=0.8, 1:00 left" in lines
    assert "training  step 6, 7,000 tokens, loss 2.250, acceptance 0.100 at T=0, 0.250 at T=0.8, 0:01 left" in lines
    assert terminal.text.count("\n") == 1  # the checkpoint's line stays


def test_durations() -> None:
    assert [duration(s) for s in (0, 59.4, 61, 3599.6, 86_400)] == ["0:00", "0:59", "1:01", "1:00:00", "24:00:00"]
