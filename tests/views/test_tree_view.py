import json
import random
from collections import Counter
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.record.state import EMITTED, Node, RunState
from specviz.views.palette import LOOKS
from specviz.views.tree import NODE_FACTS, ROUND_FACTS, TreeDelta, TreeView, network_options, node_size, strength
from tests.ui.fakes import HOSTILE
from tests.views.scripted import Story

_BIG = 2000
_POLL_BYTES = 5_000


def _nodes(delta: TreeDelta) -> list[dict[str, Any]]:
    return [dict(zip(NODE_FACTS, row, strict=True)) for row in delta["items"]]


def _rounds(delta: TreeDelta) -> dict[int, dict[str, Any]]:
    return {row[0]: dict(zip(ROUND_FACTS, row, strict=True)) for row in delta["rounds"]}


def _long_story(seed: int, rounds: int, k: int = 4) -> Story:
    rng, story = random.Random(seed), Story()
    for _ in range(rounds):
        story.round([f" d{i}" for i in range(k)], rng.randint(0, k), " t")
    return story


def test_the_text_is_the_spine_and_dropped_tokens_are_below_it() -> None:
    state = Story().round(["a", "b", "c"], 1, "x").state()
    items = {i["id"]: i for i in _nodes(TreeView().delta(state, "r", 0))}
    assert [(items[i]["status"], items[i]["lane"] > 0) for i in sorted(items)] == [
        ("accepted", False), ("rejected", True), ("ignored", True), ("resampled", False),
    ]  # fmt: skip
    by_status = {i["status"]: i for i in items.values()}
    assert by_status["rejected"]["index"] == by_status["resampled"]["index"]
    assert by_status["rejected"]["parent"] == by_status["resampled"]["parent"] == by_status["accepted"]["id"]
    assert by_status["ignored"]["lane"] == by_status["rejected"]["lane"]


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 16), st.integers(1, 40))
def test_no_two_nodes_share_a_place_however_the_events_arrive(seed: int, k: int, batch: int) -> None:
    story, view, state, base = _long_story(seed, 30, k), TreeView(), RunState(), 0
    places: dict[int, tuple[int, int]] = {}
    for start in range(0, len(story.events), batch):
        state.apply_all(story.events[start : start + batch])
        delta = view.delta(state, "r", base)
        base = delta["to"]
        places |= {i["id"]: (i["index"], i["lane"]) for i in _nodes(delta)}
    assert len(set(places.values())) == len(places) == len(state.nodes)
    assert {i["id"]: (i["index"], i["lane"]) for i in _nodes(TreeView().delta(state, "r", 0))} == places


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 8), st.integers(1, 40))
def test_bands_of_rounds_lie_side_by_side_and_count_as_the_trace_does(seed: int, k: int, batch: int) -> None:
    story, view, state, base = _long_story(seed, 25, k), TreeView(), RunState(), 0
    rounds: dict[int, dict[str, Any]] = {}
    for start in range(0, len(story.events), batch):
        state.apply_all(story.events[start : start + batch])
        delta = view.delta(state, "r", base)
        base = delta["to"]
        assert set(_rounds(delta)) == {i["round"] for i in _nodes(delta)}, "with its tokens, so that no gap loses one"
        rounds |= _rounds(delta)
    assert list(rounds) == [m.round for m in state.rounds]
    assert [(r["drafted"], r["accepted"], r["tested"]) for r in rounds.values()] == [
        (m.drafted, m.accepted, m.tested) for m in state.rounds
    ]
    assert [r["to"] - r["from"] + 1 for r in rounds.values()] == [m.emitted for m in state.rounds]
    assert rounds[0]["from"] == 0 and all(b["from"] == a["to"] + 1 for a, b in pairwise(rounds.values()))
    assert _rounds(TreeView().delta(state, "r", 0)) == rounds


def test_a_round_in_flight_has_a_band_over_what_it_has_drafted() -> None:
    story, view = Story().round(["a", "b"], 2, "c"), TreeView()
    state = RunState().apply_all(story.events)
    base = view.delta(state, "r", 0)["to"]
    story.round(["d", "e", "f"], 1, "g")
    news = story.events[len(story.events) - 7 :]
    state.apply_all(news[:3])
    flying = view.delta(state, "r", base)
    assert flying["rounds"] == [[1, 3, 5, 3, 0, 0]]
    state.apply_all(news[3:])
    assert view.delta(state, "r", flying["to"])["rounds"] == [[1, 3, 4, 3, 1, 2]]


def test_a_node_that_changed_twice_between_two_polls_is_sent_once_as_it_is_now() -> None:
    state = Story().round(["a", "b"], 2, "c").state()
    assert len(state.log) == 5
    items = _nodes(TreeView().delta(state, "r", 0))
    assert [(i["id"], i["status"]) for i in items] == [(0, "accepted"), (1, "accepted"), (2, "bonus")]


def test_a_delta_costs_what_changed_and_not_the_tree() -> None:
    story, view, state = _long_story(1, _BIG // 5), TreeView(), RunState()
    state.apply_all(story.events)
    base = view.delta(state, "r", 0)["to"]
    assert view.delta(state, "r", base)["items"] == []
    before = len(story.events)
    story.round([" a", " b", " c", " d"], 2, " e")
    state.apply_all(story.events[before:])
    reads: list[Any] = []

    class Watched(list[Node]):
        def __getitem__(self, at: Any) -> Any:
            reads.append(at)
            return super().__getitem__(at)

    state.nodes = Watched(state.nodes)
    delta = view.delta(state, "r", base)
    assert len(delta["items"]) == 5
    assert len(reads) < 40, "the whole tree was read again"


def test_a_poll_at_sixty_tokens_a_second_is_small() -> None:
    """Twelve tokens a fifth of a second; with four drafted and one kept, that is six rounds and thirty nodes."""
    story, view = _long_story(1, 400), TreeView()
    state = RunState().apply_all(story.events)
    base, before = view.delta(state, "r", 0)["to"], len(story.events)
    for _ in range(6):
        story.round([" speculative", " decoding", " proposes", " tokens"], 1, " and", acceptance=0.123456789)
    delta = view.delta(state.apply_all(story.events[before:]), "r", base)
    size = len(json.dumps(delta))
    print(f"{len(delta['items'])} nodes: {size} bytes, {size / len(delta['items']):.0f} a node")
    assert len(delta["items"]) == 30 and size < _POLL_BYTES


def test_counts_follow_the_status_of_every_node() -> None:
    story, view, state, base = _long_story(3, 25), TreeView(), RunState(), 0
    for event in story.events:
        state.apply(event)
        base = view.delta(state, "r", base)["to"]
        assert +view.counts == Counter(n.status for n in state.nodes)


def test_model_text_stays_plain_text() -> None:
    story = Story()
    for token in HOSTILE:
        story.round([token], 1, token)
    items = _nodes(TreeView().delta(story.state(), "r", 0))
    assert len(items) == 2 * len(HOSTILE)
    for item in items:
        assert len(item["label"]) <= 40
        assert not set(item["label"]) & set("\x00\x1b\u202e\u202c\n")


def test_size_says_entropy_and_the_fill_says_acceptance() -> None:
    assert node_size(None) == node_size(0.0) < node_size(1.0) < node_size(4.0)
    assert node_size(1e9) == node_size(1e6), "bounded"
    story = Story().round(["a", "b", "x"], 1, "c", acceptance=0.0).round(["d", "f"], 1, "e", acceptance=1.0)
    seen = {n.token: strength(n) for n in story.state().nodes}
    assert 0 < seen["a"] < seen["d"] == 1.0
    assert 0 == seen["b"] < seen["f"] <= 0.5, "refused: empty, or tinted where it was nearly kept"
    assert seen["c"] == 1.0 and seen["x"] == 0.0, "never up for acceptance"


def test_infinite_numbers_arrive_as_text() -> None:
    state = Story().round(["a", "b"], 1, "c", logprob=float("-inf"), entropy=None).state()
    delta = TreeView().delta(state, "r", 0)
    json.dumps(delta, allow_nan=False)
    assert {(n["draft_logprob"], n["entropy"]) for n in _nodes(delta) if n["status"] == "rejected"} == {("−∞", None)}


def test_the_spine_is_what_was_emitted() -> None:
    state = _long_story(5, 30).state()
    spine = sorted((i for i in _nodes(TreeView().delta(state, "r", 0)) if not i["lane"]), key=lambda i: i["index"])
    assert [i["id"] for i in spine] == state.text
    assert {i["status"] for i in spine} <= EMITTED


def test_no_two_statuses_differ_by_colour_alone() -> None:
    cues = Counter((look.shape, look.outline, look.filled) for look in LOOKS.values())
    assert set(cues.values()) == {1}
    assert LOOKS["rejected"].outline == "dashed" and LOOKS["ignored"].outline == "dotted"


def test_slow_options_of_vis_network_are_off() -> None:
    options = network_options()
    assert options["physics"]["enabled"] is False
    assert "hierarchical" not in options["layout"] and "arrows" not in options["edges"]
