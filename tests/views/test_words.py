import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.core.errors import PromptError
from specviz.views import words


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "n/a"), (float("nan"), "n/a"), (float("-inf"), "−∞"), (0.0, "0.00"), (-0.001, "0.00"), (-1.5, "−1.50")],
)
def test_what_is_not_known_is_never_shown_as_a_number(value: float | None, text: str) -> None:
    assert words.number(value) == text


def test_a_share_that_is_not_known_is_not_zero() -> None:
    assert (words.percent(None), words.percent(0.0), words.percent(0.714)) == ("n/a", "0 %", "71 %")


def test_invisible_and_reordering_characters_become_visible() -> None:
    shown = words.visible("a\x00b\x1b\u202ec\u200f\x7f\ud800")
    assert shown == "a␀b␛⟨U+202E⟩c⟨U+200F⟩␡⟨U+D800⟩"


def test_ordinary_text_and_joined_emoji_stay_as_they_are() -> None:
    for text in ("two\nlines\tand a tab", "שלום", "👩\u200d🔬", "naïve café", "日本語"):
        assert words.visible(text) == text


@settings(deadline=None)
@given(st.text(max_size=60))
def test_a_label_is_one_short_line(token: str) -> None:
    label = words.label(token)
    assert len(label) <= 12 and "\n" not in label and " " not in label and "\x00" not in label


def test_markdown_in_a_message_is_shown_and_not_rendered() -> None:
    error = PromptError("<b>bad</b> **x** [l](http://e.x) :red[r] $y$ `z`", "Do # this.")
    shown = words.complaint(error)
    bare = re.sub(r"\\.|`http://e.x`", "", shown)
    assert bare.startswith("**") and bare.count("*") == 4, "only the emphasis of the message itself is left"
    assert not set(bare) & set("<>[]()$`#_:")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see http://a.example/x_y, then", r"see `http://a.example/x_y`, then"),
        ("www.example.com.", "`www.example.com`."),
        ("HTTPS://a[b](c)", r"`HTTPS://a`\[b\]\(c\)"),
        ("to a.b@example.com!", r"to `a.b@example.com`\!"),
        ("http://", r"http\://"),
    ],
)
def test_an_address_is_shown_and_is_not_a_link(text: str, shown: str) -> None:
    assert words.escape_markdown(text) == shown


def test_a_number_in_front_does_not_make_a_list() -> None:
    assert words.escape_markdown("1. first") == "1\\. first"


def test_every_rule_states_its_guarantee() -> None:
    said = {
        (rule, t): words.rule_in_words(rule, t, 0.3)
        for rule in ("probabilistic", "deterministic", "greedy", "threshold")
        for t in (0.0, 1.0)
    }
    promises = {key: "LOSSY" if "LOSSY" in text else "EXACT" for key, text in said.items()}
    assert {key for key, promise in promises.items() if promise == "LOSSY"} == {
        ("greedy", 1.0), ("threshold", 0.0), ("threshold", 1.0)
    }  # fmt: skip
    assert "0.3" in said["threshold", 0.0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\nb\n", "a↵\nb↵\n"), ("  a ", "··a·"), ("  ", "··"), ("", ""), ("\n a\x00", "↵\n a␀"), ("a  b", "a  b")],
)
def test_spaces_at_the_ends_of_a_text_stay_visible(text: str, shown: str) -> None:
    assert words.exactly(text) == shown
