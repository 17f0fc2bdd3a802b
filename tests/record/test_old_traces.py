"""Recordings of specviz 0.1 and 0.2 load with the same content."""

from pathlib import Path

import pytest

from specviz.core.event_json import to_json
from specviz.record import trace
from specviz.record.report import summary
from specviz.record.state import RunState

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_a_recording_of_an_earlier_version_is_read_whole(version: str) -> None:
    recording = trace.read(FIXTURES / f"trace-{version}.jsonl")
    state = RunState().apply_all(recording.events)
    assert recording.complete and state.started and state.done
    assert (state.started.place, state.started.way, state.started.baseline_kind) == ("here", None, "separate_run")
    assert state.baseline == "plain decoding" and state.done.finish_reason == "max_tokens"
    found = summary(state)
    assert (found["rounds"], found["drafted"], found["accepted"], found["guarantee"]) == (3, 9, 9, "EXACT")
    assert found["token_ids"] == [7, 31, 31, 0, 20, 7, 1, 21, 23, 17, 30, 3]
    assert found["speedup"] and found["engine"] is None, "what was not recorded is not known"


def test_what_a_decision_was_between_is_read_from_a_recording_of_0_2() -> None:
    """It was called `candidates` then; 0.1 did not record it."""
    states = [RunState().apply_all(trace.read(FIXTURES / f"trace-{v}.jsonl").events) for v in ("0.1", "0.2")]
    counts = [sum(len(node.weighed) for node in state.nodes) for state in states]
    assert counts[0] == 0 and counts[1] > 50


def test_a_recording_of_today_reads_the_same_after_it_is_written_again(tmp_path: Path) -> None:
    recording = trace.read(FIXTURES / "trace-0.2.jsonl")
    again = tmp_path / "again.jsonl"
    lines = [trace.line(recording.header), *(trace.line(to_json(event)) for event in recording.events)]
    again.write_text("".join(lines))
    assert trace.read(again).events == recording.events
