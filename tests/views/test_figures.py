"""Each chart over a scripted run, checked by hand."""

import dataclasses
from collections.abc import Callable
from typing import cast

import pytest

from specviz.core.events import Metrics, RunStarted, TimeSplit
from specviz.record.state import RunState
from specviz.views import figures
from specviz.views.figures.frame import WINDOW, Chart
from specviz.views.palette import BAD, GOOD, LOOKS, MIDDLING, NEUTRAL
from tests.views.charts import drawn, texts, traces
from tests.views.scripted import Story

EVERY = (
    figures.acceptance_gauge, figures.position_bars, figures.speed_bars, figures.round_bars, figures.speed_lines,
    figures.latency_bars, figures.billed_bars,
)  # fmt: skip


def _remote(
    baseline_tps: float | None = 20.0, per_call_tps: float | None = 8.0, billed: tuple[int, int] | None = (50, 3)
) -> RunState:
    story = Story(baseline_tps, way="scoring", per_call_tps=per_call_tps, billed=billed)
    return story.round(["a"], 1, "b").round(["a"], 1, "b").state()


@pytest.mark.parametrize("draw", EVERY)
@pytest.mark.parametrize(
    "state", [RunState(), Story().state(), Story().round([], 0, "a").state(), _remote(), _remote(None, None, None)]
)
def test_every_chart_is_one_that_plotly_takes_and_has_a_title_and_words(
    draw: Callable[[RunState], Chart | None], state: RunState
) -> None:
    chart = draw(state)
    if chart is None:
        assert draw is figures.billed_bars
        return
    drawn(chart)
    assert chart.title and chart.words and not chart.words.endswith(".")
    assert chart.layout.keys() >= {"height", "margin"}


@pytest.mark.parametrize(
    ("rate", "colour"),
    [(None, NEUTRAL), (0.0, BAD), (0.499, BAD), (0.5, MIDDLING), (0.75, MIDDLING), (0.76, GOOD), (1.0, GOOD)],
)
def test_the_gauge_is_red_below_50_yellow_to_75_green_above(rate: float | None, colour: str) -> None:
    assert figures.acceptance_band(rate)[0] == colour


def test_nothing_tested_is_na_and_not_zero() -> None:
    for state in (RunState(), Story().state(), Story().round([], 0, "a").state()):
        gauge = figures.acceptance_gauge(state)
        assert gauge.data[0]["value"] is None and "threshold" not in gauge.data[0]["gauge"]
        assert texts(gauge) == ["n/a"] and gauge.note == "nothing tested yet"


def test_the_gauge_says_what_was_counted_and_which_rounds_the_needle_is() -> None:
    gauge = figures.acceptance_gauge(Story().round(["a", "b", "c", "d"], 3, "x").state())
    assert gauge.data[0]["value"] == 75
    assert "<b>75 %</b>" in texts(gauge) and gauge.note == "3 of 4 tested: middling"
    assert any("75 % in the last round" in t for t in texts(gauge))


def test_the_needle_is_the_last_fifty_rounds_and_the_bar_the_whole_run() -> None:
    story = Story()
    for i in range(100):
        story.round(["a"], int(i >= 50), "b")
    gauge = figures.acceptance_gauge(story.state())
    assert (gauge.data[0]["value"], gauge.data[0]["gauge"]["threshold"]["value"]) == (50, 100)
    assert gauge.words == "50 %, 50 of 100 tested: middling; 100 % in the last 50 rounds"


def test_positions_are_counted_over_the_drafts_that_reached_them() -> None:
    """A round rejected at the first position counts only there (llama.cpp PR#25818, vllm PR#44054)."""
    story = Story().round(["a", "b", "c"], 0, "x").round(["a", "b", "c"], 2, "x").round(["a"], 1, "x")
    chart = figures.position_bars(story.state())
    (bars,) = chart.data
    assert bars["x"] == [1, 2, 3]
    assert bars["y"] == [pytest.approx(66.67), 100, 0]
    assert bars["customdata"] == [[2, 3], [1, 1], [0, 1]]
    assert texts(chart) == ["67", "100", "0"]
    assert chart.layout["xaxis"]["ticktext"] == ["1<br>3", "2<br>1", "3<br>1"]


def test_a_position_that_no_draft_reached_is_na_and_not_zero() -> None:
    chart = figures.position_bars(Story().round(["a", "b"], 0, "x").state())
    assert chart.data[0]["y"] == [0, None] and texts(chart) == ["0", "n/a"]
    assert "position 2: n/a, no draft reached it" in chart.words
    assert texts(figures.position_bars(Story().round([], 0, "a").state())) == ["n/a"]


def test_every_position_of_the_block_has_a_place_from_the_start() -> None:
    story = Story()
    story.events[0] = dataclasses.replace(cast(RunStarted, story.events[0]), settings={"k": 8})
    chart = figures.position_bars(story.round(["a", "b"], 1, "x").state())
    assert chart.data[0]["x"] == list(range(1, 9))
    assert texts(chart) == ["n/a"] * 6, "bars without a number of their own, but for those that are missing"


def test_the_tokens_of_a_round_are_accepted_and_one_more() -> None:
    story = Story().round(["a", "b"], 2, "x").round(["a", "b"], 1, "x").round(["a", "b"], 2, None)
    chart = figures.round_bars(story.state())
    assert {name: t["y"] for name, t in traces(chart).items()} == {
        "accepted": [2, 1, 2], "resampled": [0, 1, 0], "bonus": [1, 0, 0],
        "mean so far": [3.0, 2.5, pytest.approx(7 / 3, abs=1e-4)],
    }  # fmt: skip
    assert all(t["x"] == [1, 2, 3] for t in chart.data)
    assert traces(chart)["bonus"]["marker"]["color"] == LOOKS["bonus"].colour
    assert chart.words == "mean of all rounds: 2.33; 5 accepted of 7 tokens in 3 rounds"


def test_charts_over_the_rounds_show_the_last_ones_only() -> None:
    story = Story(way="scoring", billed=(10, 1))
    for _ in range(WINDOW + 40):
        story.round(["a"], 1, "b")
    state = story.state()
    for draw in (figures.round_bars, figures.billed_bars):
        assert traces(draw(state)).popitem()[1]["x"] == list(range(41, WINDOW + 41))
    assert traces(figures.billed_bars(state))["sum (right)"]["y"] == [11 * n for n in range(41, WINDOW + 41)]


def test_a_bar_that_is_not_known_is_missing() -> None:
    bars = figures.speed_bars(Story(baseline_tps=None).state())
    assert bars.data[0]["x"] == [None, None] and texts(bars) == ["n/a"]
    story = Story(baseline_tps=20.0).round(["a"], 1, "b")
    bars = figures.speed_bars(story.state())
    assert bars.data[0]["x"] == [20.0, None], "one round holds the prefill: no rate yet"
    assert texts(bars) == ["20.0", "n/a"] and bars.note == "no comparison yet"
    both = figures.speed_bars(story.round(["a"], 1, "b").state())
    assert both.data[0]["x"] == [20.0, pytest.approx(40.0)] and texts(both) == ["20.0", "40.0"]
    assert (both.note, both.bad) == ("2.00 × plain decoding: faster", False)


def test_a_run_slower_than_plain_decoding_is_red_and_said_in_words() -> None:
    slow = figures.speed_bars(Story(baseline_tps=80.0).round(["a"], 1, "b").round(["a"], 1, "b").state())
    assert slow.data[0]["marker"]["color"] == [NEUTRAL, BAD]
    assert (slow.note, slow.bad) == ("0.50 × plain decoding: slower", True)
    assert slow.words.endswith("slower")


@pytest.mark.parametrize(
    ("baseline_tps", "word"), [(39.9, "as fast"), (40.1, "as fast"), (40.4, "slower"), (39.6, "faster")]
)
def test_the_word_agrees_with_the_factor_that_is_shown(baseline_tps: float, word: str) -> None:
    chart = figures.speed_bars(Story(baseline_tps).round(["a"], 1, "b").round(["a"], 1, "b").state())
    shown = {"as fast": "1.00", "slower": "0.99", "faster": "1.01"}[word]
    assert chart.note == f"{shown} × plain decoding: {word}" and chart.bad == (word == "slower")


def test_a_remote_run_is_compared_with_both_baselines() -> None:
    bars = figures.speed_bars(_remote()).data[0]
    assert dict(zip(bars["y"], bars["x"], strict=True)) == {
        "one call per token": 8.0, "streaming": 20.0, "speculative": pytest.approx(40.0)
    }  # fmt: skip
    assert bars["marker"]["color"] == [NEUTRAL, NEUTRAL, GOOD]
    assert figures.speed_bars(_remote(80.0)).data[0]["marker"]["color"][2] == BAD, "slower than streaming"
    assert figures.speed_bars(_remote(per_call_tps=None)).data[0]["x"][0] is None


def test_a_simulated_network_has_both_baselines_too() -> None:
    story = Story(baseline_tps=20.0, per_call_tps=8.0).round(["a"], 1, "b").round(["a"], 1, "b")
    story.events[0] = dataclasses.replace(cast(RunStarted, story.events[0]), simulated_rtt_ms=50.0)
    bars = figures.speed_bars(story.state()).data[0]
    assert bars["y"] == ["one call per token", "plain decoding<br>without the network", "speculative"]
    assert bars["x"] == [8.0, 20.0, pytest.approx(40.0)]


def test_the_speed_of_each_round_stands_beside_the_rate_so_far_and_the_baselines() -> None:
    story = Story(baseline_tps=20.0).round(["a"], 1, "b").round(["a"], 0, "b").round(["a"], 1, "b")
    lines = traces(figures.speed_lines(story.state()))
    assert lines["each round"]["x"] == lines["so far"]["x"] == [2, 3], "the first one is in no rate"
    assert lines["each round"]["y"] == [20.0, 40.0] and lines["so far"]["y"] == [20.0, 30.0]
    assert set(lines["plain decoding"]["y"]) == {20.0}
    remote = traces(figures.speed_lines(_remote()))
    assert remote["one call per token"]["line"]["dash"] != remote["streaming"]["line"]["dash"]
    assert "streaming" not in traces(figures.speed_lines(_remote(None, None)))


def test_a_round_that_took_no_time_has_no_speed() -> None:
    story = Story().round(["a"], 1, "b").round(["a"], 1, "b")
    state = RunState().apply_all(
        [*story.events[:-1], dataclasses.replace(cast(Metrics, story.events[-1]), split=TimeSplit())]
    )
    assert traces(figures.speed_lines(state))["each round"]["y"] == [None]


def test_the_last_ten_rounds_add_up_to_their_wall_time() -> None:
    story = Story()
    for _ in range(12):
        story.round(["a"], 1, "b")
    chart = figures.latency_bars(story.state())
    assert list(traces(chart)) == ["draft", "network", "target", "rule", "other"]
    assert chart.data[0]["x"] == [str(n) for n in range(3, 13)]
    for column in zip(*(bar["y"] for bar in chart.data), strict=True):
        assert sum(column) == pytest.approx(50.0)
    assert chart.note == "mean 50.0 ms"


def test_an_undivided_call_is_one_part_and_unknown_parts_are_not_zero() -> None:
    chart = figures.latency_bars(_remote())
    assert list(traces(chart)) == ["draft", "server call", "rule", "other"]
    assert "server call (network and computing)" in traces(chart)["server call"]["hovertemplate"]
    assert "server call (network and computing) 30.0 ms" in chart.words
    assert [sum(column) for column in zip(*(bar["y"] for bar in chart.data), strict=True)] == [50.0, 50.0]


def test_waiting_for_a_busy_server_is_not_called_network() -> None:
    story = Story(way="scoring").round(["a"], 1, "b")
    waited = dataclasses.replace(cast(Metrics, story.events[-1]), split=TimeSplit(50.0, 10.0, 5.0, 15.0, 10.0, 6.0))
    bars = traces(figures.latency_bars(RunState().apply_all([waited])))
    assert (bars["network"]["y"], bars["waiting"]["y"]) == ([5.0], [15.0])


def test_a_part_that_is_known_of_some_rounds_only_is_missing_in_the_others() -> None:
    story = Story(way="scoring").round(["a"], 1, "b")
    told = dataclasses.replace(cast(Metrics, story.events[-1]), split=TimeSplit(50.0, 10.0, 5.0, None, 25.0, 6.0))
    story.round(["a"], 1, "b")
    bars = traces(figures.latency_bars(RunState().apply_all([told, story.events[-1]])))
    assert (bars["network"]["y"], bars["server call"]["y"]) == ([5.0, None], [0.0, 30.0])


def test_what_a_server_bills_is_shown_by_round_and_in_all() -> None:
    chart = figures.billed_bars(_remote())
    assert {name: t["y"] for name, t in traces(chart).items()} == {
        "prompt": [50, 50], "output": [3, 3], "sum (right)": [53, 106]
    }  # fmt: skip
    assert chart.note == "106 in total: 100 prompt + 6 output"
    assert figures.billed_bars(Story().round(["a"], 1, "b").state()) is None, "nobody bills a model in this process"


def test_what_a_server_does_not_say_is_na_and_not_zero() -> None:
    """Reported as Bonsai-demo#190."""
    chart = figures.billed_bars(_remote(billed=None))
    assert texts(chart) == ["n/a"] and chart.note == "not reported by the server"
    assert traces(chart)["prompt"]["y"] == [None, None]
    story = Story(way="scoring", billed=(7, 1)).round(["a"], 1, "b")
    story.billed = None
    chart = figures.billed_bars(story.round(["a"], 1, "b").state())
    assert chart.note == "at least 8 in total: 7 prompt + 1 output"
    assert traces(chart)["prompt"]["y"] == [7, None] and traces(chart)["sum (right)"]["y"] == [8, 8]


HOSTILE = '<img src=x onerror=alert(1)><a href="javascript:alert(2)">x</a>&lt;b&gt; %{y} \u202e\n\x00' + "y" * 500


def test_a_name_is_shown_letter_by_letter() -> None:
    shown = figures.plain(HOSTILE, 1000)
    assert not set("<>{\n\u202e\x00") & set(shown)
    assert shown.startswith("&lt;img src=x onerror=alert(1)&gt;") and "&amp;lt;b" in shown
    assert figures.plain("Llama 3 & friends") == "Llama 3 &amp; friends"
    assert figures.plain("n" * 99) == "n" * 39 + "…"


def test_names_of_models_reach_a_chart_only_as_plain_text() -> None:
    story = Story().round(["a"], 1, "b").round(["a"], 1, "b")
    story.events[0] = dataclasses.replace(cast(RunStarted, story.events[0]), target=HOSTILE, draft=HOSTILE)
    for draw in EVERY:
        chart = draw(story.state())
        assert "<img" not in str(chart) and "<a " not in str(chart) and "\u202e" not in str(chart)


def test_messages_are_small() -> None:
    story = Story(way="scoring", billed=(500, 5), per_call_tps=5.0)
    for _ in range(200):
        story.round(["a", "b", "c", "d"], 2, "b")
    state = story.state()
    for draw in EVERY:
        assert len(str(draw(state).to_json())) < 5_000
