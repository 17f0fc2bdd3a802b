"""Events are unchanged by a JSON round trip, and keep the field names that consumers use."""

import errno
import json
import math
import os
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specviz.core.errors import TraceError
from specviz.core.event_json import from_json, to_json
from specviz.core.events import (
    Alternative,
    Done,
    DraftToken,
    Error,
    Event,
    Metrics,
    RunStarted,
    TimeSplit,
    VerifyResult,
    Weighed,
)
from specviz.core.guarantee import Guarantee, GuaranteeKind, worst

logprob = st.floats(allow_nan=False, allow_infinity=False) | st.just(-math.inf)
number = logprob | st.none()
token_id, index, position = st.integers(0, 2**31), st.integers(0, 2**31), st.integers(0, 255)
bits = st.floats(0, 20) | st.none()
alternatives = st.lists(st.builds(Alternative, token_id, st.text(), logprob, st.floats(0, 1)), max_size=3).map(tuple)
share = st.floats(0, 1) | st.none()
weighed = st.lists(st.builds(Weighed, token_id, st.text(), share, share), max_size=3).map(tuple)
split = st.builds(TimeSplit, *[st.floats(0, 1e6)] * 6)
guarantee = st.builds(
    Guarantee, st.sampled_from(["EXACT", "BOUNDED", "LOSSY", "UNKNOWN"]), st.text(), st.floats(0, 1) | st.none()
)
places = {"round": index, "index": index, "position": position, "candidate": position}
events = st.one_of(
    st.builds(
        DraftToken,
        token_id=token_id,
        logprob=number,
        entropy=bits,
        top_tokens=alternatives,
        draft_time_ms=st.floats(0, 1e6),
        **places,
    ),
    st.builds(
        VerifyResult,
        draft_token_id=token_id | st.none(),
        final_token_id=token_id | st.none(),
        draft_logprob=number,
        target_logprob=number,
        final_logprob=number,
        entropy=bits,
        **{k: share for k in ("acceptance_prob", "p", "q", "u")},
        verify_latency_ms=st.floats(0, 1e6),
        top_tokens=alternatives,
        weighed=weighed,
        overlap=share,
        **places,
    ),
    st.builds(
        Done,
        total=split,
        guarantee=guarantee,
        token_ids=st.lists(token_id).map(tuple),
        **{f"total_{what}": index for what in ("tokens", "accepted", "drafted", "tested", "rounds")},
        **{k: st.floats(0, 1e6) | st.none() for k in ("tokens_per_second", "baseline_tps", "speedup")},
    ),
    st.builds(Error),
)


@given(events)
def test_json_gives_back_an_equal_event(event: Event) -> None:
    text = json.dumps(to_json(event), allow_nan=False)
    assert repr(from_json(json.loads(text))) == repr(event)


def test_an_impossible_tokens_logprob_survives() -> None:
    alternative = Alternative(1, "a", -math.inf, 0.0)
    event = DraftToken(0, 0, 0, "a", 1, b"\xf0\x9f", -math.inf, None, (alternative,), 1.0)
    assert from_json(json.loads(json.dumps(to_json(event), allow_nan=False))) == event


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (DraftToken, "round position token token_id logprob entropy top_tokens draft_time_ms"),
        (
            VerifyResult,
            "round position status draft_token final_token draft_logprob target_logprob acceptance_prob "
            "verify_latency_ms",
        ),
        (
            Metrics,
            "acceptance_rate effective_tps baseline_tps speedup avg_draft_latency_ms avg_verify_latency_ms "
            "overall_acceptance_rate",
        ),
        (Done, "total_tokens total_accepted total_drafted total_rounds generated_text"),
        (Error, "message"),
        (RunStarted, "run_id target draft settings guarantee"),
    ],
)
def test_field_names_are_kept(kind: type, names: str) -> None:
    assert set(names.split()) <= {f.name for f in fields(kind)}


@pytest.mark.parametrize("data", [{"type": "later"}, {}, {"type": "error"}, {"type": "done", "token_ids": 5}])
def test_what_is_no_event_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(TraceError):
        from_json(data)


def test_fields_of_a_newer_version_are_left_out() -> None:
    assert from_json({"type": "error", "kind": "k", "message": "m", "later": 1}) == Error("k", "m")


JUDGED = VerifyResult(
    0, 0, 0, "rejected", " a", 1, " b", 2, b" b", -1.0, -2.0, -0.5, 0.5, 0.25, 0.5, 0.75, 1.5, (), 3.0,
    (Weighed(1, " a", 0.25, 0.5), Weighed(2, " b", None, None)), 0.625,
)  # fmt: skip


def test_a_judgement_of_an_older_trace_has_no_weighed_tokens() -> None:
    old = {name: value for name, value in to_json(JUDGED).items() if name not in ("weighed", "overlap")}
    read = from_json(json.loads(json.dumps(old)))
    assert isinstance(read, VerifyResult) and read.weighed == () and read.overlap is None
    assert read.u == 0.75


def test_weighed_tokens_of_an_older_trace_were_called_candidates() -> None:
    data = to_json(JUDGED)
    old = {"candidates" if name == "weighed" else name: value for name, value in data.items() if name != "candidate"}
    assert from_json(json.loads(json.dumps(old))) == JUDGED


@pytest.mark.parametrize(
    ("way", "plain", "per_call", "place", "today", "kind"),
    [
        ("rows", 5.0, None, "here", None, "separate_run"),
        ("rows", None, None, "here", None, None),
        ("scoring", 5.0, 2.0, "completions", "scoring", "streaming"),
        ("prefixes", 2.0, 2.0, "completions", "prefixes", "per_call"),
    ],
)
def test_an_older_start_has_the_place_and_the_kind_of_baseline_it_would_have_today(
    way: str, plain: float | None, per_call: float | None, place: str, today: str | None, kind: str | None
) -> None:
    old = {
        "type": "run_started", "run_id": "r", "target": "t", "draft": "d", "settings": {}, "guarantee":
        {"kind": "EXACT", "reason": ""}, "full_rows": True, "vocab_size": 9, "max_context": 9, "prompt_ids": [1],
        "prompt_text": "", "started_at": 1.0, "baseline_tps": plain, "per_call_tps": per_call, "way": way,
    }  # fmt: skip
    read = from_json(old)
    assert isinstance(read, RunStarted)
    assert (read.place, read.way, read.baseline_kind, read.engine) == (place, today, kind, "")


@pytest.mark.parametrize(
    "damage",
    [
        {"position": -1},
        {"position": 5_000_000},
        {"index": -1},
        {"round": 10**12},
        {"candidate": -1},
        {"status": "nonsense"},
        {"draft_token_id": -3},
        {"entropy": "1"},
        {"final_token_bytes": "xyz"},
        {"final_token_bytes": 5},
        {"draft_logprob": "-1"},
        {"weighed": 5},
        {"weighed": None},
        {"weighed": [[1, "a", 0.5]]},
        {"weighed": [[1, "a", 0.5, 0.5, 0.5]]},
        {"weighed": [["1", "a", 0.5, 0.5]]},
        {"weighed": [[True, "a", 0.5, 0.5]]},
        {"weighed": [[1, None, 0.5, 0.5]]},
        {"weighed": [[1, "a", "0.5", 0.5]]},
        {"weighed": [[1, "a", 0.5, 1.5]]},
        {"weighed": [[1, "a", -0.1, 0.5]]},
        {"weighed": [[1, "a", math.nan, 0.5]]},
        {"weighed": ["abcd"]},
        {"top_tokens": [[1, "a", -0.5, None]]},
        {"top_tokens": [[1, "a", -0.5, math.nan]]},
        {"top_tokens": [[1, 2, -0.5, 0.5]]},
        {"top_tokens": [[1, "a", 0.5]]},
        {"p": 1.5},
        {"q": math.nan},
        {"u": "0.5"},
        {"acceptance_prob": -1},
        {"overlap": "0.5"},
        {"overlap": True},
        {"overlap": math.inf},
    ],
)
def test_damaged_fields_are_refused(damage: dict[str, object]) -> None:
    with pytest.raises(TraceError, match="verify_result event is malformed"):
        from_json({**to_json(JUDGED), **damage})


def test_the_parts_of_a_split_add_up() -> None:
    total = TimeSplit(100, 10, 5, 1, 60, 4) + TimeSplit(10, 1, 1, 1, 1, 1)
    assert total.wall_ms == 110 and total.other_ms == pytest.approx(25)


def test_the_worst_guarantee_of_some_is_kept() -> None:
    exact, small, large = Guarantee("EXACT", "a"), Guarantee("BOUNDED", "b", 0.01), Guarantee("BOUNDED", "c", 0.2)
    lossy, unknown = Guarantee("LOSSY", "d"), Guarantee("UNKNOWN", "e")
    order = [exact, small, large, lossy, unknown]
    for i, one in enumerate(order):
        for other in order[: i + 1]:
            assert worst(other, one) == worst(one, other) == one
    assert worst(exact, None, Guarantee("EXACT", "other")).reason == "a"


@pytest.mark.parametrize("kind", ["EXACT", "LOSSY", "UNKNOWN"])
def test_a_guarantee_is_read_from_its_text(kind: GuaranteeKind) -> None:
    assert Guarantee.parse(kind) == Guarantee(kind, "")
    assert Guarantee.parse("BOUNDED(0.0021)") == Guarantee("BOUNDED", "", 0.0021)
    assert {Guarantee.parse(text).kind for text in ("", "SURE", "BOUNDED(x)", "BOUNDED(nan)", "BOUNDED(-1)")} == {
        "UNKNOWN"
    }


@given(st.floats(0, 1))
def test_a_bound_is_never_shown_below_its_value(epsilon: float) -> None:
    shown = Guarantee.parse(str(Guarantee("BOUNDED", "", epsilon)))
    assert shown.epsilon is not None and epsilon <= shown.epsilon <= 1
    assert str(shown) == str(Guarantee("BOUNDED", "", epsilon)), "the text of what was read is the same"


def test_a_bound_that_nobody_knows_is_the_worst_of_bounds() -> None:
    found = worst(Guarantee.parse("BOUNDED(0.5)"), Guarantee.parse("BOUNDED"))
    assert str(found) == "BOUNDED" and found.epsilon is None


def test_what_the_system_refused_is_said_as_it_said_it_and_is_called_neither_output_nor_bug() -> None:
    """Whatever the cause is, as a certificate file that is gone (aider#3710)."""
    error = Error.of(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "/gone/ca.pem"))
    assert error.message == "The operating system reported: No such file or directory: /gone/ca.pem."
    assert "bug" not in error.remedy and error.remedy
    assert Error.of(OSError("no words")).message == "The operating system reported: no words."
