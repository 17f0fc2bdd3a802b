import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specviz.targets.completions.values import Piece
from specviz.targets.completions.wire.pieces import PieceReader

#: Examples have no time limit: the machine may be busy.
slow = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
NAMES = ("text", "finish_reason", "token_ids", "logprobs", "index")

CHOICES = st.lists(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3), max_size=2)
EVENTS = st.lists(JSON | st.fixed_dictionaries({"choices": CHOICES}), max_size=4)


@slow
@given(EVENTS)
def test_no_event_breaks_the_reader(events: list[Any]) -> None:
    reader = PieceReader()
    for event in events:
        piece = reader.read(1.0, event)
        assert piece is None or (isinstance(piece.text, str) and (piece.tokens is None or piece.tokens >= 0))


def test_a_sum_comes_once_and_never_with_counts() -> None:
    last = {"choices": [{"text": "", "finish_reason": "stop"}], "usage": {"completion_tokens": 2}}
    reader = PieceReader()
    assert reader.read(1.0, {"choices": [{"text": "ab"}], "usage": {"completion_tokens": 1}}) == Piece(1.0, "ab", None)
    assert reader.read(2.0, last) == Piece(2.0, "", 2)
    assert reader.read(3.0, {"choices": [], "usage": {"completion_tokens": 2}}) is None

    reader = PieceReader()
    assert reader.read(1.0, {"choices": [{"text": "ab", "token_ids": [1, 2]}]}) == Piece(1.0, "ab", 2)
    assert reader.read(2.0, last) is None and reader.finished


def test_an_end_without_a_sum_is_no_piece() -> None:
    reader = PieceReader()
    assert reader.read(1.0, json.loads('{"choices": [{"text": "", "finish_reason": "stop"}]}')) is None
    assert reader.seen and reader.finished
