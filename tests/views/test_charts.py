"""The charts as deltas: only changed charts are sent, and none is computed without a new round."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.record.state import RunState
from specviz.views import charts
from specviz.views.charts import CHARTS, ChartsView
from specviz.views.feed import Delta
from tests.views.charts import traces
from tests.views.scripted import Story


def _names(delta: Delta) -> list[str]:
    return [item["name"] for item in delta["items"]]


def test_the_first_message_has_every_chart_of_the_place_and_the_next_one_none() -> None:
    state = Story().round(["a"], 1, "b").state()
    for place in CHARTS:
        view = ChartsView(place)
        first = view.delta(state, "r", 0)
        assert _names(first) == view.shown and (first["from"], first["to"]) == (0, 1)
        idle = view.delta(state, "r", 1)
        assert idle == {"run": "r", "from": 1, "to": 1, "items": []}
        assert len(json.dumps({**idle, "shown": view.shown})) < 130


def test_only_changed_charts_are_sent() -> None:
    story = Story().round(["a", "b"], 1, "x")
    view = ChartsView("beside")
    view.delta(story.state(), "r", 0)
    story.round([], 0, "x")
    assert _names(view.delta(story.state(), "r", 1)) == ["acceptance", "speed", "latency"], "nothing new by position"


def test_charts_are_not_computed_again_before_a_round_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setitem(CHARTS, "beside", {"acceptance": lambda state: drawn.append(len(state.rounds))})
    events = Story().round(["a", "b"], 1, "x").round(["a", "b"], 1, "x").done().events
    view, state = ChartsView("beside"), RunState()
    for event in events:
        state.apply(event)
        view.delta(state, "r", 0)
    assert drawn == [0, 1, 2, 2], "at the start, after each round, at the end"


def test_a_browser_that_lost_messages_gets_all_later_changes() -> None:
    story = Story().round(["a"], 1, "x")
    view = ChartsView("beside")
    view.delta(story.state(), "r", 0)
    for revision in (1, 2):
        view.delta(story.round(["a"], 1, "x").state(), "r", revision)
    again = view.delta(story.state(), "r", 0)
    assert _names(again) == view.shown and again["to"] == 3
    assert again["items"][1]["figure"]["data"][0]["customdata"] == [[3, 3]]


def test_another_run_starts_afresh() -> None:
    view = ChartsView("below")
    view.delta(Story(way="scoring", billed=(1, 1)).round(["a"], 1, "x").state(), "r", 0)
    assert "billed" in view.shown
    other = view.delta(Story().state(), "s", 0)
    assert other["run"] == "s" and other["to"] == 1 and "billed" not in view.shown == _names(other)


@settings(deadline=None)
@given(
    st.lists(
        st.integers(0, 5).flatmap(lambda k: st.tuples(st.just(k), st.integers(0, k))),
        max_size=30,
    )
)
def test_the_bars_equal_the_events(rounds: list[tuple[int, int]]) -> None:
    """For any run, the charts show the numbers of its events."""
    story = Story(way="prefixes", billed=(40, 4))
    for k, accepted in rounds:
        story.round(["d"] * k, accepted, "x")
    verdicts = [e for e in story.events if e.type == "verify_result"]
    metrics = [e for e in story.events if e.type == "metrics"]
    shown = {name: draw(story.state()) for place in CHARTS.values() for name, draw in place.items()}

    (positions,) = shown["positions"].data
    for position, share, (kept, reached) in zip(positions["x"], positions["y"], positions["customdata"], strict=True):
        here = [e.status for e in verdicts if e.position == position - 1]
        assert kept == here.count("accepted") and reached == kept + here.count("rejected")
        assert share is None if not reached else share == pytest.approx(100 * kept / reached, abs=0.01)
    tested = [e for e in verdicts if e.status in ("accepted", "rejected")]
    assert sum(n for _, n in positions["customdata"]) == len(tested)

    bars = traces(shown["rounds"])
    for name in ("accepted", "resampled", "bonus"):
        status = "rejected" if name == "resampled" else name
        counts = [sum(e.status == status for e in verdicts if e.round == m.round) for m in metrics]
        assert bars[name]["y"] == counts
    assert [sum(t) for t in zip(*(bars[n]["y"] for n in ("accepted", "resampled", "bonus")), strict=True)] == [
        m.emitted for m in metrics
    ]
    assert traces(shown["billed"])["sum (right)"]["y"] == [44 * (m.round + 1) for m in metrics]
    for column, m in zip(zip(*(t["y"] for t in shown["latency"].data), strict=True), metrics[-10:], strict=True):
        assert sum(column) == pytest.approx(m.split.wall_ms)
    gauge = shown["acceptance"].data[0]["value"]
    kept = sum(e.status == "accepted" for e in tested)
    assert gauge is None if not tested else gauge == pytest.approx(100 * kept / len(tested), abs=0.01)


def test_every_chart_has_one_place() -> None:
    names = [name for place in charts.CHARTS.values() for name in place]
    assert len(names) == len(set(names)) == 7
