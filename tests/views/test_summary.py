import pytest

from specviz.events import Guarantee
from specviz.metrics import RunState
from specviz.settings import Settings
from specviz.views import summary
from specviz.views.welcome import welcome_html
from tests.views.scripted import Story


def _card(state: RunState, name: str, k: int = 4) -> summary.Figure:
    return next(f for f in summary.numbers(state, Settings(k=k)) if f.name == name)


def _rounds(baseline_tps: float | None) -> RunState:
    return Story(baseline_tps).round(["a"], 1, "b").round(["a"], 1, "b").state()


def test_slower_than_plain_decoding_is_said_in_words_and_red():
    card = _card(_rounds(80.0), "Speed-up")
    assert (card.value, card.note, card.tone) == ("0.50 ×", "slower than plain decoding", "bad")
    assert _card(_rounds(20.0), "Speed-up").tone == "good"


def test_without_a_baseline_there_is_no_speedup():
    card = _card(_rounds(None), "Speed-up")
    assert (card.value, card.note, card.tone) == ("n/a", "", "neutral")


def test_accepted_and_tokens_per_round_are_two_numbers_with_two_names():
    story = Story()
    for i in range(43):
        story.round(["a"], int(i < 10), "b")
    state = story.state()
    assert _card(state, "Accepted per round").value == "0.23"
    assert _card(state, "Tokens per round").value == "1.23"


def test_nothing_is_zero_before_it_is_known():
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
def test_the_badge_of_every_guarantee(guarantee, badge):
    assert summary.badge(guarantee) == badge


def test_how_much_can_be_green_follows_k():
    assert "at most 4 of every 5" in summary.green_limit(4)


def test_the_colours_are_explained_before_the_first_run():
    html = welcome_html()
    for status in ("accepted", "resampled", "bonus", "rejected", "ignored", "pending"):
        assert f"<b>{status}</b>" in html
