"""The command line as a person types it, in a process of its own where exit codes and streams matter."""

import io
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from specviz.cli import main, parser
from specviz.cli.generate import _verdict
from specviz.cli.terminal import ProgressLine, Utf8Stream, safe
from specviz.core.vocabulary import Vocabulary
from specviz.core.wait import Progress
from specviz.store import sources
from tests.engines.tiny_distilled import write_tiny_distilled
from tests.store.gguf_shelves import in_ollama

ROOT = Path(__file__).parent.parent.parent
TOY = ["--target", "toy", "--draft", "toy"]
FIELDS = (
    "text token_ids rounds drafted tested accepted acceptance_rate accepted_per_round tokens_per_round "
    "tokens_per_second baseline_tokens_per_second speedup guarantee rule time_ms"
).split()


def specviz(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "specviz", *arguments], capture_output=True, text=True, cwd=ROOT, input=text, timeout=120
    )


def test_json_is_one_object_on_standard_output_and_logs_go_to_standard_error() -> None:
    ran = specviz("generate", "--prompt", "the draft", *TOY, "--max-tokens", "24", "--json")
    assert ran.returncode == 0, ran.stderr
    data = json.loads(ran.stdout)
    assert set(FIELDS) <= set(data)
    assert len(data["token_ids"]) == 24 and data["guarantee"] == "EXACT" and data["speedup"] > 0
    time_ms = data["time_ms"]
    assert sum(v for k, v in time_ms.items() if k != "wall") == pytest.approx(time_ms["wall"])
    assert "Measuring plain decoding" in ran.stderr


def test_a_draft_behind_lookup_that_ends_early(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    common = ["generate", "--prompt", "the draft", "--target", "toy", "--max-tokens", "24", "--json", "--no-baseline"]
    early = ["--draft", "ngram+toy", "--k", "8", "--min-confidence", "0.3", "--trace", str(trace)]
    assert main([*common, *early]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["draft"] == "ngram+toy" and data["drafted"] < 8 * data["rounds"]
    assert main([*common, "--draft", "none"]) == 0
    assert json.loads(capsys.readouterr().out)["token_ids"] == data["token_ids"]
    first = json.loads(trace.read_text().splitlines()[0])
    assert "0.3" in json.dumps(first) and main(["replay", str(trace), "--json"]) == 0


def test_no_draft_asked_for_is_the_targets_default(capsys: pytest.CaptureFixture[str]) -> None:
    for draft in ([], ["--draft", "auto"]):
        arguments = ["--prompt", "the draft", "--target", "toy", "--max-tokens", "4", "--json", "--no-baseline"]
        assert main(["generate", *arguments, *draft]) == 0
        assert json.loads(capsys.readouterr().out)["draft"] == "ngram"


def test_the_list_of_models_shows_what_is_part_of_specviz(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sources, "WEIGHTS", tmp_path)
    for here in ("no", "yes"):
        assert main(["models", "list"]) == 0
        (line,) = (x for x in capsys.readouterr().out.splitlines() if x.startswith("smollm2-draft"))
        assert "0 MB" in line and f" {here} " in line
        write_tiny_distilled(tmp_path / "smollm2-draft", Vocabulary("toy", ("a", "b", "c")), [0, 2])


def test_text_goes_to_standard_output_and_figures_to_standard_error() -> None:
    ran = specviz("generate", "--prompt", "the draft", *TOY, "--max-tokens", "24")
    assert ran.returncode == 0 and "\x1b" not in ran.stdout
    assert "EXACT" in ran.stderr and "accepted per round" in ran.stderr and "tokens per round" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prompt", ""], "prompt is empty"),
        (["--prompt", " \n"], "prompt is empty"),
        (["--prompt", "x" * 5000], "context holds 4096"),
        (["--prompt", "hi", "--k", "0"], "from 1 to 16, not 0"),
        (["--prompt", "hi", "--k", "99"], "not 99"),
        (["--prompt", "hi", "--temperature", "-1"], "not -1"),
        (["--prompt", "hi", "--temperature", "nan"], "not nan"),
        (["--prompt", "hi", "--max-tokens", "0"], "not 0"),
        (["--prompt", "hi", "--target", "nothing"], "Unknown target"),
        (["--prompt", "hi", "--draft", "odd:name"], "Unknown draft"),
        (["--prompt", "hi", "--draft", "ngram+none"], "Unknown draft"),
        (["--prompt", "hi", "--min-confidence", "1"], "below 1, not 1"),
        (["--prompt", "hi", "--draft", "model:smollm2"], "Did you mean smollm2-135m"),
        (["--prompt", "hi", "--draft", "model:smollm2-135m"], "different vocabularies"),
        (["--prompt", "hi", "--k", "four"], "invalid int"),
        (["--prompt-file", "/"], "/ is a folder, not a prompt"),
        (["--prompt-file", "no/such/file"], "no/such/file cannot be read: No such file"),
        (["--prompt", "hi", "--stop", ""], "stop string is empty"),
        (["--prompt", "hi", "--stop", r"a\q"], r"The stop string 'a\q' has a single backslash before 'q'"),
        (["--prompt", "hi", "--stop", r"\u12"], "before 'u'"),
        (["--prompt", "hi", "--stop", "a\\"], "at its end"),
        (["--prompt", "hi", "--stop", r"\ud83d"], "not valid text"),
        (["--prompt", "bad \udcff"], "not valid text"),
        (["--prompt", "hi", "--system", "x", "--raw"], "chat template"),
        (["--prompt", "hi", "--draft", ""], "draft has no name"),
        (["--prompt", "hi", "--target", "local:smollm2-135m", "--draft", "llama-3.2-1b"], "llama3 and smollm2"),
        (["--prompt", "hi", "--trace", "/dev/full/x"], "Cannot write the trace"),
    ],
)
def test_bad_input_is_exit_code_2_with_the_rule(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["generate", *TOY, *arguments])
    except SystemExit as exc:  # argparse's own refusal
        code = int(exc.code or 0)
    out, err = capsys.readouterr()
    assert code == 2 and words in err and out == ""


def test_a_folder_without_weights_and_a_foreign_file_are_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "note.txt").write_text("x")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF" + bytes(40))
    (tmp_path / "bare").mkdir()
    for name, words in (
        ("bare", "no config.json"),
        ("", "holds GGUF files, and is no model"),
        ("note.txt", "note.txt is plain text, not a GGUF file"),
        ("cut.gguf", "not a complete GGUF"),
    ):
        for option in ("--target=local:", "--draft=model:"):
            assert main(["generate", "--prompt", "hi", f"{option}{tmp_path / name}"]) == 2
            err = capsys.readouterr().err
            assert err.startswith("error: ") and words in err and "Loading" not in err


def test_a_trace_is_replayed_with_the_same_figures(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    made = specviz("generate", "--prompt", "the", *TOY, "--max-tokens", "30", "--trace", str(path), "--json")
    played = specviz("replay", str(path), "--json")
    assert json.loads(made.stdout) == json.loads(played.stdout)
    shown = specviz("replay", str(path))
    assert shown.returncode == 0 and shown.stdout.count("\n") == json.loads(made.stdout)["rounds"]


def test_a_cut_trace_is_replayed_and_said(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    specviz("generate", "--prompt", "the", *TOY, "--max-tokens", "30", "--trace", str(path))
    path.write_bytes(path.read_bytes()[:-2000])
    played = specviz("replay", str(path))
    assert played.returncode == 0 and "incomplete" in played.stderr
    assert specviz("replay", str(tmp_path / "none")).returncode == 2


def test_escapes_in_a_stop_string_are_the_characters_that_they_stand_for(tmp_path: Path) -> None:
    # llama.cpp#1444
    stops = [r"\n\t\r", r"a\\n", r"\u00e9\ud83d\ude00", "plain"]
    options = [option for stop in stops for option in ("--stop", stop)]
    assert main(["generate", *TOY, "--prompt", "hi", "--no-baseline", *options, f"--trace={tmp_path / 't'}"]) == 0
    assert trace_of(tmp_path / "t")[0]["settings"]["stop"] == ["\n\t\r", "a\\n", "é😀", "plain"]


@pytest.mark.parametrize(
    ("data", "prompt"),
    [
        (b"\xef\xbb\xbfthe draft\r\n", "the draft"),  # langchain#40440
        ("the\r\ndraft\n".encode("utf-16"), "the\ndraft"),
        (b"the draft\n\n", "the draft\n"),  # llama.cpp#1444
    ],
)
def test_mark_and_last_line_end_of_a_prompt_file_are_no_tokens(tmp_path: Path, data: bytes, prompt: str) -> None:
    (tmp_path / "p.txt").write_bytes(data)
    given = ["--prompt-file", str(tmp_path / "p.txt"), "--raw", "--no-baseline", "--trace", str(tmp_path / "t")]
    assert main(["generate", *TOY, "--max-tokens", "2", *given]) == 0
    assert trace_of(tmp_path / "t")[1]["prompt_text"] == prompt


def trace_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_prompt_comes_from_standard_input_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("the draft")
    first = specviz("generate", "--prompt", "-", *TOY, "--max-tokens", "8", "--json", text="\ufeffthe draft\n")
    second = specviz("generate", "--prompt-file", str(tmp_path / "p.txt"), *TOY, "--max-tokens", "8", "--json")
    assert json.loads(first.stdout)["token_ids"] == json.loads(second.stdout)["token_ids"]


def test_a_trace_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", *TOY, "--prompt", "hi", "--trace", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "Cannot write the trace" in err and "Measuring" not in err


def test_ctrl_c_keeps_what_was_decoded(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    endless = ["--temperature", "1.9", "--top-k", "30", "--max-tokens", "1024", "--no-baseline", "--seed", "3"]
    code = (
        "import threading, sys; from specviz.targets.local import LocalTarget; real = LocalTarget.verify\n"
        "def slow(*a): threading.Event().wait(0.02); return real(*a)\n"
        "LocalTarget.verify = slow; from specviz.record import trace; trace.BATCH_S = 0\n"
        "from specviz.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "generate",
        *TOY,
        *endless,
        "--prompt",
        "the",
        "--trace",
        str(trace),
        "--json",
    ]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(2000):
        if trace.exists() and trace.read_text().count('"metrics"') >= 3:
            break
        threading.Event().wait(0.01)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    data = json.loads(out)
    assert child.returncode == 130, err
    assert data["finish_reason"] == "stopped" and 0 < len(data["token_ids"]) < 1024


def test_a_hostile_recording_cannot_command_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "evil.jsonl"
    assert main(["generate", *TOY, "--prompt", "the", "--max-tokens", "4", "--no-baseline", "--trace", str(path)]) == 0
    evil = path.read_text().replace('"target":"toy"', '"target":"\\u001b]0;x\\u0007\\u202e"')
    path.write_text(evil + '{"type":"error","kind":"k","message":"\\u001b[2J","remedy":"\\u009b31m"}\n')
    for extra in ([], ["--json"]):
        capsys.readouterr()
        assert main(["replay", str(path), *extra]) == 0
        out, err = capsys.readouterr()
        assert not set("\x1b\x07\x9b\u202e") & set(out + err)


@pytest.mark.parametrize("pace", ["-1", "nan", "1e-300", "fast"])
def test_a_pace_that_means_nothing_is_refused(pace: str) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["replay", "x", "--pace", pace])
    assert refused.value.code == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_result_that_cannot_be_written_is_an_error() -> None:
    command = [sys.executable, "-m", "specviz", "generate", *TOY, "--prompt", "the", "--no-baseline", "--json"]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=60)
    assert ran.returncode == 1 and "cannot be written" in ran.stderr and "Traceback" not in ran.stderr


def test_without_a_baseline_no_speedup_is_claimed() -> None:
    data = json.loads(specviz("generate", "--prompt", "the", *TOY, "--no-baseline", "--json").stdout)
    assert data["baseline_tokens_per_second"] is None and data["speedup"] is None


def test_help_teaches() -> None:
    top, generate = specviz("--help").stdout, specviz("generate", "--help").stdout
    assert "python -m specviz generate --prompt" in top and "baseline" in generate and "lossy" in generate
    assert parser().prog == "specviz"


def test_models_can_be_listed_and_located(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list"]) == 0
    listed = capsys.readouterr().out
    assert "smollm2-135m" in listed and "llama-3.2-1b" in listed
    assert main(["models", "path", "smollm2"]) == 2
    assert "Did you mean smollm2-135m" in capsys.readouterr().err


def test_models_of_other_programs_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    in_ollama(tmp_path, "library/llama3.2", "3b", general_size_label="3B")
    assert main(["models", "list"]) == 0
    (line,) = (x for x in capsys.readouterr().out.splitlines() if x.startswith("ollama/"))
    assert line.split() == "ollama/llama3.2:3b 3B 0 MB yes 3B, Q4_K_M, 0 MB on the disk, from Ollama.".split()


def test_text_cannot_command_the_terminal() -> None:
    assert safe("a\x1b]0;title\x07b\x9b31m\u202e\tc\n") == "a\\x1b]0;title\\x07b\\x9b31m\\u202e\tc\n"


def test_a_split_character_waits_for_its_other_half() -> None:
    stream = Utf8Stream()
    assert [stream.feed(b"\xf0\x9f"), stream.feed(b"\x98\x80!")] == ["", "\U0001f600!"]


class Terminal(io.StringIO):
    """Standard error of a person who looks on, or of a log file."""

    def __init__(self, watched: bool) -> None:
        super().__init__()
        self.watched = watched

    def isatty(self) -> bool:
        return self.watched


def test_waits_are_shown_beside_the_text_and_never_over_it() -> None:
    for watched in (True, False):
        err = Terminal(watched)
        line = ProgressLine(err)
        line(Progress("Loading", 1, 2))
        line.beside_text()
        begun = len(err.getvalue())
        for done in range(3):
            line(Progress("Busy\x1b[2J: waiting", done, 3))
        line(Progress(""))
        line(Progress("Busy\x1b[2J: waiting"))
        assert err.getvalue()[begun:] == "\nBusy\\x1b[2J: waiting\n" * 2


def test_a_wait_that_is_over_is_taken_away() -> None:
    err = Terminal(True)
    line = ProgressLine(err)
    line(Progress("Waiting", 1, 2))
    line(Progress(""))
    assert err.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "openai:m"], "has no address"),
        (["--target", "openai:m", "--base-url", "nonsense://me:secret-word@x"], "not an http:// or https:// address"),
        (["--target", "openai", "--base-url", "http://127.0.0.1:9/v1"], "needs the name of a model"),
        (["--target", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--draft", "toy"], "toy pair"),
        (
            ["--target", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--tokenizer", "no such"],
            "'no such'",
        ),
        (["--target", "openai:m", "--base-url", "http://127.0.0.1:9/v1"], "--tokenizer"),
    ],
)
def test_a_remote_target_that_lacks_something(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TARGET_BASE_URL", "TARGET_MODEL", "CEREBRAS_TARGET_MODEL", "CEREBRAS_API_KEY", "TARGET_TOKENIZER"):
        monkeypatch.delenv(name, raising=False)
    assert main(["generate", "--prompt", "hi", *arguments]) == 2
    out, err = capsys.readouterr()
    assert words in err and out == "" and "secret-word" not in err


def test_a_simulated_network_costs_time_and_no_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    common = ["generate", "--prompt", "the draft", *TOY, "--temperature", "0.8", "--max-tokens", "12", "--json"]
    assert main([*common, "--no-baseline"]) == 0
    here = json.loads(capsys.readouterr().out)
    network = ["--simulated-rtt-ms", "6", "--simulated-jitter-ms", "2", "--trace", str(trace)]
    assert main([*common, *network]) == 0
    out, err = capsys.readouterr()
    there = json.loads(out)
    assert there["token_ids"] == here["token_ids"] and here["time_ms"]["network"] == 0
    assert (there["simulated_rtt_ms"], there["simulated_jitter_ms"]) == (6, 2)
    assert there["time_ms"]["network"] >= 4 * there["rounds"]
    assert sum(v for k, v in there["time_ms"].items() if k != "wall") == pytest.approx(there["time_ms"]["wall"])
    assert there["baseline"] == "plain decoding without the network" and there["per_call_tokens_per_second"] < 250
    assert "Measuring plain decoding" in err and "Measuring one call per token" in err
    assert main(["replay", str(trace)]) == 0
    assert "simulated network: 6 ms ± 2 ms before every call" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--simulated-rtt-ms", "-1"], "from 0 to 2000, not -1"),
        (["--simulated-rtt-ms", "2001"], "not 2001"),
        (["--simulated-rtt-ms", "10", "--simulated-jitter-ms", "11"], "at most the simulated RTT, 10 ms, not 11 ms"),
        (["--simulated-jitter-ms", "1"], "at most the simulated RTT, 0 ms"),
        (["--target", "openai:m", "--simulated-rtt-ms", "10"], "openai:m has a real one"),
    ],
)
def test_a_network_that_cannot_be_is_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "--prompt", "hi", *TOY, *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("factor", "said"),
    [(0.994, "0.99 x, slower than streaming"), (0.997, "1.00 x"), (1.3, "1.30 x"), (None, "speed-up n/a")],
)
def test_slower_is_said_of_a_factor_that_is_shown_below_one(factor: float | None, said: str) -> None:
    assert _verdict(factor, "streaming") == said
