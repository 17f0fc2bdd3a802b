from dataclasses import replace
from typing import cast

import pytest

from specviz.core.events import RunStarted, Way
from specviz.core.guarantee import Guarantee
from specviz.core.settings import RuleName, Settings
from specviz.record.state import RunState
from specviz.views import summary
from specviz.views.welcome import welcome_html
from tests.views.scripted import Story


def _card(state: RunState, name: str, k: int = 4) -> summary.Figure:
    return next(f for f in summary.numbers(state, Settings(k=k)) if f.name == name)


def _rounds(baseline_tps: float | None) -> RunState:
    return Story(baseline_tps).round(["a"], 1, "b").round(["a"], 1, "b").state()


def test_slower_than_plain_decoding_is_said_in_words_and_red() -> None:
    card = _card(_rounds(80.0), "Speed-up")
    assert (card.value, card.note, card.tone) == ("0.50 ×", "slower than plain decoding", "bad")
    assert _card(_rounds(20.0), "Speed-up").tone == "good"


@pytest.mark.parametrize("baseline_tps", [39.9, 40.0, 40.1])
def test_a_factor_that_is_shown_as_one_is_neither_good_nor_bad(baseline_tps: float) -> None:
    card = _card(_rounds(baseline_tps), "Speed-up")
    assert (card.value, card.note, card.tone) == ("1.00 ×", "as fast as plain decoding", "neutral")


def test_without_a_baseline_there_is_no_speedup() -> None:
    card = _card(_rounds(None), "Speed-up")
    assert (card.value, card.note, card.tone) == ("n/a", "", "neutral")


def _remote(baseline_tps: float | None = 80.0, billed: tuple[int, int] | None = (120, 3)) -> RunState:
    story = Story(baseline_tps, way="prefixes", per_call_tps=10.0, billed=billed)
    return story.round(["a"], 1, "b").round(["a"], 1, "b").state()


def test_a_remote_run_has_a_factor_for_each_baseline() -> None:
    card = _card(_remote(), "Speed-up")
    assert (card.value, card.note, card.tone) == ("0.50 ×", "slower than streaming", "bad")
    card = _card(_remote(), "Against single calls")
    assert (card.value, card.note, card.tone) == ("4.00 ×", "faster than one call per token", "good")
    assert _card(_remote(None), "Speed-up").value == "n/a"
    assert "Against single calls" not in [f.name for f in summary.numbers(_rounds(20.0), Settings())]


def test_billed_tokens_are_summed_and_never_zero_where_the_server_does_not_count() -> None:
    card = _card(_remote(), "Billed tokens")
    assert (card.value, card.note) == ("246", "240 prompt + 6 output") and "Calls per round: 1.00" in card.help
    card = _card(_remote(billed=None), "Billed tokens")
    assert (card.value, card.note) == ("n/a", "not reported by the server")
    assert "Billed tokens" not in [f.name for f in summary.numbers(_rounds(20.0), Settings())]
    story = Story(way="scoring", billed=(7, 1)).round(["a"], 1, "b")
    story.billed = None
    assert _card(story.round(["a"], 1, "b").state(), "Billed tokens").value == "at least 8"


@pytest.mark.parametrize(
    ("way", "rule", "temperature", "said"),
    [
        (None, "probabilistic", 0.7, "probabilistic"),
        ("scoring", "probabilistic", 0.7, "probabilistic"),
        ("prefixes", "probabilistic", 0.7, "probabilistic (matched with the server's draws)"),
        ("generating", "deterministic", 0.7, "deterministic (matched with the server's draws)"),
        ("prefixes", "probabilistic", 0.0, "probabilistic"),
        ("prefixes", "greedy", 0.7, "greedy"),
        ("scoring", "threshold", 0.7, "threshold τ = 0.3"),
    ],
)
def test_the_rule_in_force_is_named(way: Way | None, rule: RuleName, temperature: float, said: str) -> None:
    """Keeping matches of own draws has another acceptance rate than rejection sampling (mlx-lm PR#1709)."""
    assert summary.rule_in_force(Settings(rule=rule, temperature=temperature), Story(way=way).state()) == said


def test_accepted_and_tokens_per_round_are_two_numbers_with_two_names() -> None:
    story = Story()
    for i in range(43):
        story.round(["a"], int(i < 10), "b")
    state = story.state()
    assert _card(state, "Accepted per round").value == "0.23"
    assert _card(state, "Tokens per round").value == "1.23"


def test_the_acceptance_rate_is_given_overall_and_for_the_last_rounds() -> None:
    story = Story()
    for i in range(100):
        story.round(["a"], int(i >= 50), "b")
    said = _card(story.state(), "Accepted per round").help
    assert "50 % over the whole run, 100 % over the last 50 rounds" in said
    assert "n/a over the whole run" in _card(RunState(), "Accepted per round").help


def test_nothing_is_zero_before_it_is_known() -> None:
    values = {f.name: f.value for f in summary.numbers(RunState(), Settings())}
    assert values == {"Speed-up": "n/a", "Accepted per round": "n/a", "Tokens per round": "n/a", "Output": "0"}


@pytest.mark.parametrize(
    ("guarantee", "badge"),
    [
        (None, ("gray", "UNKNOWN")),
        (Guarantee("EXACT", ""), ("green", "EXACT")),
        (Guarantee("BOUNDED", "", 0.01), ("blue", "BOUNDED(0.01)")),
        (Guarantee("LOSSY", ""), ("red", "LOSSY")),
        (Guarantee("UNKNOWN", ""), ("gray", "UNKNOWN")),
    ],
)
def test_the_badge_of_every_guarantee(guarantee: Guarantee | None, badge: tuple[str, str]) -> None:
    assert summary.badge(guarantee) == badge


def test_how_much_can_be_green_follows_k() -> None:
    assert "at most 4 of every 5" in summary.green_limit(4)


def test_the_colours_are_explained_before_the_first_run() -> None:
    html = welcome_html()
    for status in ("accepted", "resampled", "bonus", "rejected", "ignored", "pending"):
        assert f"<b>{status}</b>" in html


@pytest.mark.parametrize(
    ("age_s", "way", "said"),
    [
        (0.0, None, "measured for this run."),
        (200.0, None, "measured 3 minutes before this run, and found as fast again at its start."),
        (45.0, "scoring", "measured 45 seconds before this run."),
        (None, None, "measured in this session."),
    ],
)
def test_the_age_of_a_baseline_is_said(age_s: float | None, way: Way | None, said: str) -> None:
    story = Story(way=way).round([" a"], 1, " b")
    story.events[0] = replace(cast(RunStarted, story.events[0]), baseline_age_s=age_s)
    assert said in summary.speedup(RunState().apply_all(story.events)).help


def test_the_engine_and_why_it_is_not_the_usual_one() -> None:
    started = RunStarted(
        run_id="r", target="local:x", draft="none", settings={}, guarantee=Guarantee("EXACT", ""), vocab_size=9,
        max_context=9, prompt_ids=(1,), prompt_text="a", started_at=0.0, engine="llama", precision="Q8_0",
        model_file="x.gguf",
    )  # fmt: skip
    state = RunState()
    assert summary.engine(state) == ""
    state.apply(started)
    assert summary.engine(state) == "llama, Q8_0"
    state = RunState()
    state.apply(replace(started, engine="mlx", precision="float32", engine_note="The processor lacks AVX2."))
    assert summary.engine(state) == "mlx, float32. The processor lacks AVX2."
    state = RunState()
    state.apply(replace(started, model_file=""))
    assert summary.engine(state) == "", "the toy has no file"
