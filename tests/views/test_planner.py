"""The Planner's charts, numbers and sentences over scripted measurements."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from specviz.bench.planning.inputs import Measured, by_hand
from specviz.bench.planning.model import Against, Bill, Costs, answer, break_even_map, marginal, speedup, speedups
from specviz.core.cost_model import VerifyCurve
from specviz.record.state import RunState
from specviz.views import planner
from specviz.views.figures.frame import Chart
from specviz.views.planner import sentences
from specviz.views.planner.frame import KS
from specviz.views.planner.numbers import bill_cards, main_cards, table
from tests.views.charts import drawn, texts, traces
from tests.views.scripted import Story

EVERY = (planner.rtt_map, planner.draft_speed_map, planner.speed_curve, planner.marginal_bars)
AGAINST = ("streaming", "one call per token")

GOOD = Measured(
    source="draft → target",
    rounds=100,
    kept=(80, 60, 30, 10),
    proposed=(100,) * 4,
    reached=(100, 80, 60, 30),
    alpha=0.7,
    plain_ms=100.0,
    draft_ms=10.0,
    verify=VerifyCurve.of([(0, 100), (4, 140)]),
)
USELESS = replace(GOOD, kept=(0, 0, 0, 0), alpha=0.0)
HAND = by_hand(0.6, 89.0, 5.0, [(4, 127.0), (16, 180.0)])
NEAR = Costs(0.0, 10.0)


def _verdict(measured: Measured, costs: Costs = NEAR, against: Against = "streaming") -> str:
    found = answer(measured, costs, KS, against)
    return sentences.verdict(found, against) + " " + sentences.what_would_change_it(found)


@pytest.mark.parametrize("draw", EVERY)
@pytest.mark.parametrize("against", AGAINST)
@pytest.mark.parametrize(
    "measured", [GOOD, USELESS, HAND, replace(GOOD, network_included=True), replace(GOOD, rtt_ms=450.0, draft_ms=0.0)]
)
def test_every_chart_is_one_that_plotly_takes_and_has_a_title_and_words(
    draw: Callable[[Measured, Costs, Against], Chart], measured: Measured, against: Against
) -> None:
    for costs in (NEAR, Costs(300.0, 0.0), Costs(37.0, 500.0)):
        chart = draw(measured, costs, against)
        drawn(chart)
        assert chart.title and chart.note and chart.words and not chart.words.endswith(".")


def test_a_map_holds_the_speed_up_and_writes_it_where_it_is_above_one() -> None:
    chart = planner.rtt_map(GOOD, NEAR, "streaming")
    heat, line, _ = chart.data
    rtts = [float(text) for text in chart.layout["yaxis"]["ticktext"]]
    cells = break_even_map(GOOD, NEAR, KS, rtts)
    for row, rtt in enumerate(rtts):
        for column, k in enumerate(KS):
            factor = speedup(GOOD, k, Costs(rtt, 10.0))
            assert heat["customdata"][row][column][0] == pytest.approx(factor, abs=1e-3)
            assert heat["text"][row][column] == (f"{factor:.1f}" if factor > 1 else "")
            assert (heat["z"][row][column] > 0) == (cells[row, column] > 1)
    assert line["contours"]["start"] == line["contours"]["end"] == 0 and line["z"] == heat["z"]
    assert heat["zmin"] == -heat["zmax"], "1 is in the middle of the colours"


def test_a_map_says_what_was_not_measured() -> None:
    chart = planner.rtt_map(GOOD, NEAR, "streaming")
    assert texts(chart) == ["extrapolated →"] and chart.layout["shapes"][0]["x0"] == 4.5
    told = [cell[2] for cell in chart.data[0]["customdata"][0]]
    assert told == ["from measured acceptance"] * 4 + ["extrapolated"] * 12
    hand = planner.rtt_map(HAND, NEAR, "streaming")
    assert not texts(hand) and {c[2] for c in hand.data[0]["customdata"][0]} == {"from your assumptions"}


def test_the_ring_is_at_the_best_measured_k_and_between_the_rows_of_the_map() -> None:
    chart = planner.rtt_map(GOOD, Costs(35.0, 10.0), "streaming")
    ring = chart.data[-1]
    rows = [float(t) for t in chart.layout["yaxis"]["ticktext"]]
    assert ring["y"] == [(rows.index(30) + rows.index(40)) / 2]
    assert ring["x"] == [answer(GOOD, Costs(35.0, 10.0), KS).k]


def test_a_far_run_stretches_the_map_to_where_it_was_measured() -> None:
    assert planner.rtt_ceiling(GOOD) == 300 and planner.rtt_ceiling(replace(GOOD, rtt_ms=450.0)) == 450
    assert planner.rtt_map(replace(GOOD, rtt_ms=450.0), NEAR, "streaming").layout["yaxis"]["ticktext"][-1] == "450"


@pytest.mark.parametrize(("plain", "draft", "ceiling"), [(89, 5, 100), (100, 10, 100), (0.3, 0.13, 0.3), (20, 40, 100)])
def test_the_map_reaches_to_drafts_as_slow_as_the_target_or_twice_as_slow_as_measured(
    plain: float, draft: float, ceiling: float
) -> None:
    assert planner.draft_ceiling(replace(GOOD, plain_ms=plain, draft_ms=draft)) == pytest.approx(ceiling)


def test_the_curve_is_solid_where_measured_and_dashed_after_it_with_the_formula_beside_it() -> None:
    chart = planner.speed_curve(GOOD, NEAR, "streaming")
    lines = traces(chart)
    own = [round(float(v), 4) for v in speedups(GOOD, NEAR, KS)]
    assert (lines["measured acceptance"]["x"], lines["measured acceptance"]["y"]) == ([1, 2, 3, 4], own[:4])
    assert lines["extrapolated"]["line"]["dash"] == "dash" and lines["extrapolated"]["y"] == own[3:]
    assert len(lines["same α at every position"]["x"]) == 16
    assert lines["best"]["x"] == [2] and not chart.bad
    assert planner.speed_curve(USELESS, NEAR, "streaming").bad


def test_marginal_bars_say_which_positions_are_worth_their_time() -> None:
    chart = planner.marginal_bars(GOOD, NEAR, "streaming")
    gained, time = chart.data
    steps = marginal(GOOD, NEAR, KS)
    assert gained["y"] == [round(s.tokens, 4) for s in steps] and time["y"] == [round(s.cost_tokens, 4) for s in steps]
    assert gained["marker"]["pattern"]["shape"] == [""] * 4 + ["/"] * 12
    assert chart.note == "worth their time: 1, 2"
    assert planner.marginal_bars(USELESS, NEAR, "streaming").note == "no position is worth its time"


def test_the_verdict_names_k_the_factor_and_where_it_changes() -> None:
    assert _verdict(HAND, Costs(0.0, 5.0)) == (
        "Speculate with K = 2: 1.48 × streaming. The answer changes at a round trip of 61.2 ms, or a draft of 43.9 ms "
        "per token."
    )


def test_a_draft_that_is_never_accepted_gives_the_verdict_not_to_speculate() -> None:
    told = _verdict(USELESS)
    assert told.startswith("Do not speculate here: at best 0.83 × streaming with K = 1.")
    assert "A round gives 1.00 tokens in the time of 1.20 without speculation." in told
    assert told.endswith("Neither another round trip nor a faster draft changes that.")


def test_the_verdict_says_what_would_change_it() -> None:
    far = _verdict(HAND, Costs(200.0, 5.0))
    assert far.startswith("Do not speculate here") and "a round trip of 61.2 ms; at the present one no draft" in far
    slow = _verdict(HAND, Costs(0.0, 80.0))
    assert slow.endswith("No round trip changes that; a draft of 43.9 ms per token would.")
    calls = _verdict(HAND, Costs(0.0, 5.0), "one call per token")
    assert calls.endswith("It holds at any round trip, and changes at a draft of 43.9 ms per token.")


@pytest.mark.parametrize("against", AGAINST)
def test_the_answer_changes_where_it_says(against: Against) -> None:
    """Slightly below and above the values in the sentence, the verdicts differ."""
    for costs in (Costs(40.0, 5.0), Costs(200.0, 5.0), Costs(30.0, 60.0), Costs(10.0, 100.0)):
        found = answer(HAND, costs, KS, against)
        for at, ask in ((found.draft_ms, "draft_ms"), (found.rtt_ms, "rtt_ms")):
            if at:
                near, past = (answer(HAND, replace(costs, **{ask: at * f}), KS, against) for f in (0.999, 1.001))
                assert near.speculate is not past.speculate


def test_too_few_rounds_are_no_verdict() -> None:
    few = replace(GOOD, rounds=8, kept=(3,), proposed=(8,), reached=(8,), draft_ms=24.0, alpha=0.375)
    told = _verdict(few, Costs(0.0, 24.0))
    assert told.startswith("Too close to call: K = 1 gives 1.03 × streaming, with a 95 % interval of ")
    assert "Measure more rounds." in told


def test_an_extrapolated_k_is_only_mentioned() -> None:
    told = _verdict(replace(GOOD, kept=(95, 92), proposed=(100, 100), reached=(100, 95), alpha=0.96), Costs(0.0, 1.0))
    assert told.startswith("Speculate with K = 2:")
    assert re.search(r"K = \d+ may reach \d\.\d\d ×, extrapolated beyond the measured K: measure it\.$", told)


def test_the_error_of_the_formula_is_stated() -> None:
    told = sentences.where_iid_fails(replace(GOOD, kept=(90, 40, 10, 0), reached=(100, 90, 40, 10), alpha=0.58))
    assert "position, α = 0.58" in told and "Blocks that end early" not in told
    assert "at K = 1 that would be 1.58 tokens per round where 1.90 were measured, 17 % less" in told
    assert "90 % were accepted at position 1 and 0 % at position 4" in told
    assert "both curves agree" in sentences.where_iid_fails(replace(GOOD, kept=(70, 49, 34, 24)))
    assert "both curves are equal" in sentences.where_iid_fails(HAND)
    assert "Blocks that end early" in sentences.where_iid_fails(replace(GOOD, proposed=(100, 60, 30, 10)))


def test_the_limits_of_the_numbers_are_stated() -> None:
    def told(measured: Measured, costs: Costs = NEAR, against: Against = "streaming") -> str:
        return " ".join(sentences.warnings(measured, costs, against))

    assert told(GOOD) == ""
    assert "is added to them" in told(replace(GOOD, network_included=True))
    assert "no speed-up over streaming" in told(replace(GOOD, way="generating", network_included=True))
    assert "for their mean, 2.00 tokens" in told(replace(GOOD, proposed=(100, 60, 30, 10)))
    assert "10 ms was measured" in told(GOOD, Costs(0.0, 20.0)) and not told(HAND, Costs(0.0, 20.0))
    assert "one call per token equals plain decoding" in told(GOOD, against="one call per token")


def test_the_cards_are_the_verdict_in_numbers() -> None:
    cards = main_cards(GOOD, answer(GOOD, NEAR, KS))
    assert [c.value for c in cards] == ["2", "1.71 ×", "2.40", "≤ 110 ms"]
    assert cards[1].tone == "good" and cards[1].note.startswith("95 %: ") and cards[2].note == "needs 1.40"
    bad = main_cards(USELESS, answer(USELESS, NEAR, KS))
    assert bad[1].tone == "bad" and bad[3].value == "none" and "no draft" in bad[3].note
    calls = main_cards(HAND, answer(HAND, Costs(0.0, 5.0), KS, "one call per token"))
    assert calls[3].value == "any" and "95 %" not in calls[1].note


def test_without_prices_the_bill_is_na_and_with_them_it_is_compared() -> None:
    unknown = bill_cards(GOOD, 3, Bill(None, 2.0, 100, 200), "scoring")
    assert [c.value for c in unknown] == ["n/a"] * 3 and "×" not in unknown[0].note
    known = bill_cards(GOOD, 3, Bill(1.0, 2.0, 100, 200), "prefixes")
    assert "n/a" not in {c.value for c in known} and "× the price of streaming" in known[0].note


@pytest.mark.parametrize(("value", "text"), [(None, "n/a"), (0.0, "0.00"), (0.00123, "0.00123"), (12.345, "12.35")])
def test_prices_keep_the_digits_that_they_need(value: float | None, text: str) -> None:
    assert sentences.price(value) == text


def test_the_table_has_a_row_per_k_and_says_where_it_is_from() -> None:
    rows = table(GOOD, NEAR, "streaming")
    assert [r["K"] for r in rows] == list(KS)
    assert [r["from"] for r in rows] == ["measured"] * 4 + ["extrapolation"] * 12
    assert {r["from"] for r in table(HAND, NEAR, "streaming")} == {"assumption"}


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (RunState(), "not begun"),
        (Story(None).round(["a"], 1, "b").state(), "no measured baseline"),
        (Story().round([], 0, "a").round([], 0, "a").state(), "No draft token was tested"),
        (Story().round(["a"], 1, "b").state(), "too few rounds"),
        (Story().round(["a"], 1, "b").round(["a"], 1, "b").state(), ""),
    ],
)
def test_a_run_that_cannot_be_planned_from_says_what_it_lacks(state: RunState, said: str) -> None:
    assert said in sentences.run_lacks(state) and bool(said) == bool(sentences.run_lacks(state))


def test_spans() -> None:
    assert sentences.spans([1, 2, 3, 5, 7, 8]) == "1 to 3, 5, 7, 8"


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0 ms"), (43.86, "43.9 ms"), (1234.5, "1,234 ms"), (1e300, "1e+300 ms")]
)
def test_milliseconds_stay_short(value: float, text: str) -> None:
    assert sentences.ms(value) == text
