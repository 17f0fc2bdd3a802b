"""Recordings: events are read back as written, also after a crash, and without secrets."""

import dataclasses
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from specviz.core.decoding import speculative
from specviz.core.errors import TraceError
from specviz.core.event_json import from_json, to_json
from specviz.core.events import Done, DraftToken, Error, Event, Metrics, RunStarted, VerifyResult
from specviz.core.secrets import Secrets
from specviz.core.settings import Settings
from specviz.record import trace
from specviz.record.state import RunState
from specviz.targets.simulated_network import SimulatedNetwork
from tests.toys import TOKENIZER, toy_draft, toy_target

SETTINGS = Settings(max_tokens=40, target="toy", draft="toy")


@pytest.fixture
def events() -> list[Event]:
    prompt = TOKENIZER.encode("the draft")
    return list(speculative(toy_draft(), toy_target(), prompt, SETTINGS, seed=0))


@pytest.fixture
def recorded(tmp_path: Path, events: list[Event]) -> Path:
    path = tmp_path / "deep" / "run.jsonl"
    with trace.TraceWriter(path, SETTINGS) as writer:
        for event in events:
            writer.write(event)
    return path


def test_replaying_gives_back_the_same_events(recorded: Path, events: list[Event]) -> None:
    recording = trace.read(recorded)
    assert list(recording.events) == events and recording.complete
    head = recording.header
    assert head["schema"] == trace.SCHEMA and head["settings"] == SETTINGS.to_json()
    assert head["versions"]["specviz"] and head["machine"]["cores"]


def test_every_line_is_strict_json(recorded: Path) -> None:
    for text in recorded.read_text().splitlines():
        json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


@pytest.mark.parametrize("cut", [2, 5, 40, 200, 2_000])
def test_a_cut_last_line_is_left_out(recorded: Path, events: list[Event], cut: int) -> None:
    recorded.write_bytes(recorded.read_bytes()[:-cut])
    recording = trace.read(recorded)
    assert list(recording.events) == events[: len(recording.events)] and len(recording.events) < len(events)
    assert not recording.complete


def test_any_cut_behind_the_header_gives_the_complete_lines(tmp_path: Path) -> None:
    """Also inside a character: kill -9 and a full disk can truncate at any byte."""
    prompt = "the é 😀"
    events: list[Event] = list(
        speculative(
            toy_draft(), toy_target(), TOKENIZER.encode(prompt), Settings(max_tokens=2), seed=0,
            prompt_text=prompt,
        )
    )  # fmt: skip
    whole = "".join(trace.lines(SETTINGS, events)).encode()
    path = tmp_path / "cut.jsonl"
    for length in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:length])
        read = trace.read(path).events
        # A last line without its newline may be complete.
        assert len(read) - whole[:length].count(b"\n") + 1 in (0, 1) and list(read) == events[: len(read)]


def test_a_cut_header_is_refused_with_a_remedy(recorded: Path) -> None:
    for length in (0, 1, 60):
        recorded.write_bytes(recorded.read_bytes()[:length])
        with pytest.raises(TraceError) as refused:
            trace.read(recorded)
        assert refused.value.remedy


def test_a_judgement_without_its_draft_is_refused(events: list[Event]) -> None:
    with pytest.raises(TraceError, match="never proposed"):
        RunState().apply_all(e for e in events if e.type != "draft_token")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_full_disk_is_an_error_with_a_remedy() -> None:
    with pytest.raises(TraceError, match="No space left"), trace.TraceWriter(Path("/dev/full"), SETTINGS):
        pass


def test_a_disk_that_fills_in_the_middle_is_one_error(tmp_path: Path, events: list[Event]) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(TraceError, match="No space left"), trace.TraceWriter(tmp_path / "t", SETTINGS) as writer:
        assert writer._file is not None
        writer._file.close()
        writer._file = Full()
        for event in events:
            writer.write(event)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b'{"type": "error"}\n', "not a header"),
        (b'{"type": "header", "schema": 99}\n', "schema 99"),
        (b'{"type": "header", "schema": 1}\nnonsense\n{}\n', "Line 2"),
        (b'{"type": "header", "schema": 1}\n\n\nnonsense\n{}\n', "Line 4"),
        (b'{"type": "header", "schema": 1}\n\n{"type": "draft_token", "round": 0, "position": -1}\n', "Line 3"),
        (b'{"type": "header", "schema": 1}\n{"type": "dance"}\n', "Line 2"),
        (b'{"type": "header", "schema": 1}\n[]\n', "not an object"),
        (b"\xff\xfe\x00", "plain text, not a trace"),
        (b"\xff\xfe\x00\n", "plain text, not a trace"),
        (b'{"type": "header", "schema": 1}\n' + b"[" * 200_000 + b"\n", "Line 2"),
        (b'{"type": "header", "schema": 1}\n{"type": "metrics", "round": ' + b"9" * 5000 + b"}\n", "Line 2"),
        (b'{"type": "header", "schema": 1}\n{"type": "error", "kind": "k", "message": 3}\n', r"\$\.message"),
        (b'{"type": "header", "schema": 1}\n{"type": "later"}\n', "Unknown event"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=words):
        trace.read(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_a_trace_that_an_editor_has_saved_again_is_read(recorded: Path, events: list[Event], encoding: str) -> None:
    # grype#3505: a file that PowerShell had written was called damaged.
    text = recorded.read_text().replace("\n", "\r\n")
    recorded.write_bytes(text.encode(encoding))
    assert list(trace.read(recorded).events) == events
    recorded.write_bytes(text.encode(encoding)[:-13])  # ends inside a character
    assert list(trace.read(recorded).events) == events[:-1]


def test_two_traces_in_one_file_are_said_with_the_line_of_the_second(recorded: Path) -> None:
    whole = recorded.read_bytes()
    recorded.write_bytes(whole + b"\n" + whole)
    second = len(whole.splitlines()) + 2  # an empty line lies between them
    with pytest.raises(TraceError, match=f"more than one trace: the second begins at line {second}"):
        trace.read(recorded)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "is a Git LFS pointer, not a trace"),
        (b"<!DOCTYPE html>\n<html></html>\n", "is an HTML page, not a trace"),
        (b"PK\x03\x04\x14\x00", "is a zip archive, not a trace"),
        (b'{\n  "schema": "specviz.bench/1"\n}\n', "is a saved benchmark, not a trace"),
        ("Grüße\n".encode("latin-1"), "is text in another encoding than UTF-8, not a trace"),
    ],
)
def test_what_is_something_else_is_called_what_it_is(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "run.jsonl").write_bytes(content)
    with pytest.raises(TraceError, match=words):
        trace.read(tmp_path / "run.jsonl")
    with pytest.raises(TraceError, match="is a folder, not a trace"):
        trace.read(tmp_path)


@pytest.mark.parametrize(
    ("kind", "name", "value", "words"),
    [
        (DraftToken, "logprob", "NaN", "NaN is not a number"),
        (DraftToken, "logprob", "1e999", "logprob"),
        (DraftToken, "token", '"\\ud800"', "half of a surrogate pair"),
        (DraftToken, "top_tokens", '[{"2": 1}]', "malformed"),
        (DraftToken, "position", "5000000", "position"),
        (DraftToken, "position", '0, "position": 1', "the key 'position' twice"),
        (VerifyResult, "status", '"nonsense"', "status"),
        (RunStarted, "settings", '{"k": {"a": [1]}}', "settings"),
        (RunStarted, "settings", '{"temperature": 1e999}', "settings"),
        (RunStarted, "settings", "[" * 100_000 + "]" * 100_000, "nested too deeply"),
    ],
)
def test_a_value_that_no_run_writes_is_refused_with_its_line(
    recorded: Path, events: list[Event], kind: type, name: str, value: str, words: str
) -> None:
    at = next(i for i, event in enumerate(events) if isinstance(event, kind))
    lines = recorded.read_text().splitlines()
    data = json.loads(lines[at + 1])
    text = json.dumps(data | {name: "?"}).replace(f'"{name}": "?"', f'"{name}": {value}')
    recorded.write_text("\n".join([*lines[: at + 1], text, *lines[at + 2 :]]) + "\n")
    with pytest.raises(TraceError, match=f"Line {at + 2} of the trace.*{words}"):
        trace.read(recorded)


def test_what_is_read_of_a_trace_is_bounded(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MAX_LINE_BYTES", 2000)
    recorded.write_bytes(recorded.read_bytes().splitlines(keepends=True)[0] + b'{"a": "' + b"a" * 2000 + b'"}\n')
    with pytest.raises(TraceError, match="Line 2 of the trace has 2,010 bytes; at most 2,000"):
        trace.read(recorded)
    with pytest.raises(TraceError, match="/dev/zero is binary data"):
        trace.read(Path("/dev/zero"))


def test_a_missing_file_and_an_unwritable_one_are_said(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        trace.read(tmp_path / "none.jsonl")
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match="Cannot write"), trace.TraceWriter(tmp_path / "file" / "x.jsonl", SETTINGS):
        pass


def test_a_key_is_struck_out_wherever_it_came_from(tmp_path: Path, events: list[Event]) -> None:
    key = 'csk-"planted"-key-123'
    leaky = Settings(system=f"my key is {key}")
    with trace.TraceWriter(tmp_path / "t.jsonl", leaky, secrets=Secrets([key])) as writer:
        for event in events:
            writer.write(event)
    for text in ("".join(trace.lines(leaky, events, Secrets([key]))), (tmp_path / "t.jsonl").read_text()):
        assert key not in text and "planted" not in text and "[secret]" in text


def test_kill_9_leaves_every_round_whose_batch_was_written(tmp_path: Path) -> None:
    """With a batch for each round, these are all rounds that had ended."""
    path = tmp_path / "killed.jsonl"
    code = f"""
import time
from pathlib import Path
from specviz.record import trace
from specviz.core.decoding import speculative
from tests.toys import TOKENIZER, toy_draft, toy_target
from specviz.core.settings import Settings
s = Settings(max_tokens=1000)
trace.BATCH_S = 0.0
with trace.TraceWriter(Path({str(path)!r}), s) as w:
    for e in speculative(toy_draft(), toy_target(stop_ids=frozenset()), TOKENIZER.encode("the"), s):
        w.write(e)
        if e.type == "metrics":
            print(e.round, flush=True)
            time.sleep(0.005)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for text in child.stdout:
        if int(text) >= 20:
            break
    os.kill(child.pid, signal.SIGKILL)
    seen = [int(n) for n in re.findall(r"\d+", child.stdout.read())]
    child.wait()
    child.stdout.close()
    recording = trace.read(path)
    rounds = [e.round for e in recording.events if isinstance(e, Metrics)]
    assert rounds == list(range(len(rounds))) and len(rounds) >= max([20, *seen]) + 1
    assert not any(isinstance(e, Done) for e in recording.events) and not recording.complete


def test_rounds_go_to_the_file_once_a_second_and_the_end_at_once(tmp_path: Path, events: list[Event]) -> None:
    now, begun, written = 100.0, 100.0, 1
    path = tmp_path / "t.jsonl"
    with trace.TraceWriter(path, SETTINGS, clock=lambda: now) as writer:
        for count, event in enumerate(events[:-1], start=1):
            if isinstance(event, Metrics):
                now += 0.3
                if now - begun >= 1.0:
                    begun, written = now, count
            writer.write(event)
            assert list(trace.read(path).events) == events[:written]
        assert 1 < written < len(events) - 1
        writer.write(events[-1])
        assert list(trace.read(path).events) == events
    assert list(trace.read(path).events) == events


def test_an_error_in_the_run_leaves_what_came_before_it(tmp_path: Path, events: list[Event]) -> None:
    path = tmp_path / "t.jsonl"
    with pytest.raises(KeyError), trace.TraceWriter(path, SETTINGS) as writer:
        for event in events[:9]:
            writer.write(event)
        raise KeyError
    assert list(trace.read(path).events) == events[:9]


def test_an_event_with_a_secret_is_replaced_and_any_other_is_left_alone(events: list[Event]) -> None:
    leaky = Error("RefusedError", 'the key "sk-1234567" is bad', "see sk-1234567")
    assert trace.without(leaky, Secrets(["sk-1234567", "other"])) == Error(
        "RefusedError", 'the key "[secret]" is bad', "see [secret]"
    )
    assert all(trace.without(e, Secrets(["sk-1234567"])) is e for e in events)


def test_a_secret_of_digits_leaves_numbers_alone(events: list[Event]) -> None:
    assert isinstance(events[0], RunStarted)
    started = dataclasses.replace(events[0], started_at=1795842622.5, prompt_text="it is 1795842622")
    text = trace.line(to_json(started), Secrets(["1795842622"]))
    assert json.loads(text)["started_at"] == 1795842622.5 and json.loads(text)["prompt_text"] == "it is [secret]"


def test_a_simulated_network_is_said_in_the_header_and_where_the_run_starts() -> None:
    settings = dataclasses.replace(SETTINGS, max_tokens=4, simulated_rtt_ms=2.0, simulated_jitter_ms=0.5)
    target = SimulatedNetwork(toy_target(), 2.0, 0.5)
    events = list(speculative(toy_draft(), target, TOKENIZER.encode("the"), settings, seed=0))
    recording = trace.parse(trace.lines(settings, events))
    assert list(recording.events) == events
    assert recording.header["settings"]["simulated_rtt_ms"] == 2.0
    started, *_ = recording.events
    assert isinstance(started, RunStarted) and (started.simulated_rtt_ms, started.simulated_jitter_ms) == (2.0, 0.5)
    assert started.settings["simulated_jitter_ms"] == 0.5


def test_a_trace_from_before_networks_were_simulated_has_none(events: list[Event]) -> None:
    data = to_json(events[0])
    del data["simulated_rtt_ms"], data["simulated_jitter_ms"]
    assert from_json(data) == events[0]
