import json
import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.metrics import RunState
from specviz.views.palette import LOOKS
from specviz.views.tree import TreeView, network_options, node_size, opacity
from tests.ui.fakes import HOSTILE
from tests.views.scripted import Story

_BIG = 2000


def _long_story(seed: int, rounds: int, k: int = 4) -> Story:
    rng, story = random.Random(seed), Story()
    for _ in range(rounds):
        story.round([f" d{i}" for i in range(k)], rng.randint(0, k), " t")
    return story


def test_the_text_runs_along_the_spine_and_what_was_dropped_hangs_below():
    state = Story().round(["a", "b", "c"], 1, "x").state()
    items = {i["id"]: i for i in TreeView().delta(state, "r", 0)["items"]}
    assert [(items[i]["status"], items[i]["y"] > 0) for i in sorted(items)] == [
        ("accepted", False), ("rejected", True), ("ignored", True), ("resampled", False),
    ]  # fmt: skip
    by_status = {i["status"]: i for i in items.values()}
    assert by_status["rejected"]["x"] == by_status["resampled"]["x"]
    assert by_status["rejected"]["parent"] == by_status["resampled"]["parent"] == by_status["accepted"]["id"]
    assert by_status["ignored"]["y"] == by_status["rejected"]["y"]


@settings(deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 16), st.integers(1, 40))
def test_no_two_nodes_share_a_place_however_the_events_arrive(seed, k, batch):
    story, view, state, base = _long_story(seed, 30, k), TreeView(), RunState(), 0
    places = {}
    for start in range(0, len(story.events), batch):
        state.apply_all(story.events[start : start + batch])
        delta = view.delta(state, "r", base)
        base = delta["to"]
        places |= {i["id"]: (i["x"], i["y"]) for i in delta["items"]}
    assert len(set(places.values())) == len(places) == len(state.nodes)
    assert {i["id"]: (i["x"], i["y"]) for i in TreeView().delta(state, "r", 0)["items"]} == places


def test_a_delta_costs_what_changed_and_not_the_tree():
    story, view, state = _long_story(1, _BIG // 5), TreeView(), RunState()
    state.apply_all(story.events)
    base = view.delta(state, "r", 0)["to"]
    assert view.delta(state, "r", base)["items"] == []
    before = len(story.events)
    story.round([" a", " b", " c", " d"], 2, " e")
    state.apply_all(story.events[before:])
    reads = []

    class Watched(list):
        def __getitem__(self, at):
            reads.append(at)
            return super().__getitem__(at)

    state.nodes = Watched(state.nodes)
    delta = view.delta(state, "r", base)
    assert len(delta["items"]) == 5
    assert len(reads) < 40, "the whole tree was read again"
    assert len(json.dumps(delta)) < 4_000


def test_counts_follow_the_status_of_every_node():
    story, view, state, base = _long_story(3, 25), TreeView(), RunState(), 0
    for event in story.events:
        state.apply(event)
        base = view.delta(state, "r", base)["to"]
        assert +view.counts == Counter(n.status for n in state.nodes)


def test_model_text_stays_plain_text():
    story = Story()
    for token in HOSTILE:
        story.round([token], 1, token)
    items = TreeView().delta(story.state(), "r", 0)["items"]
    assert len(items) == 2 * len(HOSTILE)
    for item in items:
        assert len(item["label"]) <= 12
        assert all(len(line) < 80 for line in item["title"].splitlines())
        assert not set(item["label"] + item["title"]) & set("\x00\x1b\u202e\u202c")


def test_size_says_entropy_and_opacity_says_acceptance():
    assert node_size(None) == node_size(0.0) < node_size(1.0) < node_size(4.0)
    assert node_size(1e9) == node_size(1e6), "bounded"
    state = Story().round(["a", "b"], 1, "c", acceptance=0.0).round(["d"], 1, "e", acceptance=1.0).state()
    seen = {n.token: opacity(n) for n in state.nodes}
    assert 0 < seen["a"] < seen["d"] == 1.0
    assert seen["c"] == 1.0, "never up for acceptance"


def test_no_two_statuses_differ_by_colour_alone():
    cues = Counter((look.shape, look.outline, look.filled) for look in LOOKS.values())
    assert set(cues.values()) == {1}
    assert LOOKS["rejected"].outline == "dashed" and LOOKS["ignored"].outline == "dotted"


def test_nothing_that_costs_time_is_switched_on():
    options = network_options()
    assert options["physics"]["enabled"] is False
    assert "hierarchical" not in options["layout"] and "arrows" not in options["edges"]
