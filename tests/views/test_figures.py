import dataclasses

import pytest

from specviz.events import TimeSplit
from specviz.metrics import RunState
from specviz.views import figures
from specviz.views.palette import BAD, GOOD, MIDDLING, NEUTRAL
from tests.views.scripted import Story


@pytest.mark.parametrize(
    ("rate", "colour"),
    [(None, NEUTRAL), (0.0, BAD), (0.499, BAD), (0.5, MIDDLING), (0.75, MIDDLING), (0.76, GOOD), (1.0, GOOD)],
)
def test_the_gauge_is_red_below_50_yellow_to_75_green_above(rate, colour):
    assert figures.acceptance_band(rate)[0] == colour


def _texts(figure) -> list[str]:
    return [a.text for a in figure.layout.annotations]


def test_nothing_tested_is_na_and_not_zero():
    for state in (RunState(), Story().state(), Story().round([], 0, "a").state()):
        gauge = figures.acceptance_gauge(state)
        assert gauge.data[0].value is None
        assert "n/a" in _texts(gauge)


def test_the_gauge_says_what_was_counted():
    gauge = figures.acceptance_gauge(Story().round(["a", "b", "c", "d"], 3, "x").state())
    assert gauge.data[0].value == 75
    assert "75 %" in _texts(gauge) and any("3 of 4 tested" in t for t in _texts(gauge))


def test_a_bar_that_is_not_known_is_missing():
    bars = figures.speed_bars(Story(baseline_tps=None).state())
    assert bars.data[0].x == (None, None) and "n/a" in _texts(bars)
    story = Story(baseline_tps=20.0).round(["a"], 1, "b")
    assert figures.speed_bars(story.state()).data[0].x == (20.0, None), "one round holds the prefill: no rate yet"
    both = figures.speed_bars(story.round(["a"], 1, "b").state())
    assert both.data[0].x == (20.0, pytest.approx(40.0)) and _texts(both) == ["20.0", "40.0"]


def test_a_run_slower_than_plain_decoding_is_red():
    slow = Story(baseline_tps=80.0).round(["a"], 1, "b").round(["a"], 1, "b").state()
    assert figures.speed_bars(slow).data[0].marker.color[1] == BAD


def test_the_last_ten_rounds_add_up_to_their_wall_time():
    story = Story()
    for _ in range(12):
        story.round(["a"], 1, "b")
    figure = figures.latency_bars(story.state())
    assert [bar.name for bar in figure.data] == ["draft", "network", "target", "rule", "other"]
    assert figure.data[0].x == tuple(str(n) for n in range(3, 13))
    for column in zip(*(bar.y for bar in figure.data), strict=True):
        assert sum(column) == pytest.approx(50.0)


def _remote(baseline_tps: float | None = 20.0, per_call_tps: float | None = 8.0) -> RunState:
    story = Story(baseline_tps, way="scoring", per_call_tps=per_call_tps)
    return story.round(["a"], 1, "b").round(["a"], 1, "b").state()


def test_a_remote_run_is_compared_with_both_baselines():
    bars = figures.speed_bars(_remote()).data[0]
    assert dict(zip(bars.y, bars.x, strict=True)) == {
        "one call per token": 8.0, "streaming": 20.0, "speculative": pytest.approx(40.0)
    }  # fmt: skip
    assert bars.marker.color == (NEUTRAL, NEUTRAL, GOOD)
    assert figures.speed_bars(_remote(80.0)).data[0].marker.color[2] == BAD, "slower than streaming"
    assert figures.speed_bars(_remote(per_call_tps=None)).data[0].x[0] is None


def test_a_call_that_nobody_divides_is_one_part_and_unknown_parts_are_no_zeros():
    figure = figures.latency_bars(_remote())
    assert [bar.name for bar in figure.data] == ["draft", "server call (network and computing)", "rule", "other"]
    assert [sum(column) for column in zip(*(bar.y for bar in figure.data), strict=True)] == [50.0, 50.0]


def test_waiting_for_a_busy_server_is_not_called_network():
    story = Story(way="scoring").round(["a"], 1, "b")
    waited = dataclasses.replace(story.events[-1], split=TimeSplit(50.0, 10.0, 5.0, 15.0, 10.0, 6.0))
    bars = {bar.name: bar.y for bar in figures.latency_bars(RunState().apply_all([waited])).data}
    assert (bars["network"], bars["waiting"]) == ((5.0,), (15.0,))


def test_no_template_travels_with_a_figure():
    for make in (figures.acceptance_gauge, figures.speed_bars, figures.latency_bars):
        assert len(make(Story().round(["a"], 1, "b").state()).to_json()) < 2_500
