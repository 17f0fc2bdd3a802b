import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.record.state import RunState
from specviz.views import text
from tests.ui.fakes import HOSTILE
from tests.views.scripted import Special, Story

EMOJI = "😀".encode()


def _story(*tokens: str | bytes | Special) -> Story:
    story = Story()
    for token in tokens:
        story.round([token], 1, None)
    return story


def _items(state: RunState, base: int = 0) -> list[dict[str, Any]]:
    return text.delta(state, "r", base)["items"]


def test_one_span_per_token_in_order() -> None:
    items = _items(Story().round([" the", " cat"], 1, " dog").state())
    assert [(i["at"], i["text"], i["tokens"]) for i in items] == [
        (0, " the", [[0, "accepted", 0, 0, 100, -0.5, -0.5, 0.8, 1.5]]),
        (1, " dog", [[2, "resampled", 0, 1, 201, None, -0.5, None, 1.5]]),
    ]


def test_a_token_that_was_impossible_is_still_json() -> None:
    items = _items(Story().round(["a"], 1, None, logprob=float("-inf"), entropy=float("nan")).state())
    assert items[0]["tokens"][0][5:] == ["−∞", "−∞", 0.8, None]
    assert json.loads(json.dumps(items, allow_nan=False)) == items


def test_a_token_costs_few_bytes() -> None:
    story = Story()
    for _ in range(50):
        story.round([" the", " draft", " proposes"], 2, " decides", logprob=-12.34567, entropy=3.14159)
    items = _items(story.state())
    assert len(json.dumps(items)) / len(items) < 120


def test_an_emoji_over_two_tokens_is_one_character_with_both_tokens() -> None:
    items = _items(_story("a", EMOJI[:2], EMOJI[2:], "b").state())
    assert [i.get("text") for i in items] == ["a", "😀", "b"]
    assert [len(i["tokens"]) for i in items] == [1, 2, 1]
    assert items[1]["names"] == ["\\xf0\\x9f", "\\x98\\x80"], "each half keeps a name of its own"
    assert "names" not in items[0]


def test_half_a_character_is_held_back_until_the_rest_comes() -> None:
    story = _story("a", EMOJI[:2])
    first = text.delta(story.state(), "r", 0)
    assert (first["to"], [i["text"] for i in first["items"]]) == (1, ["a"])
    whole = _story("a", EMOJI[:2], EMOJI[2:]).state()
    assert [i["text"] for i in _items(whole, first["to"])] == ["😀"]


def test_half_a_character_at_the_end_of_a_run_is_a_chip() -> None:
    items = _items(_story("a", EMOJI[:2]).done().state())
    assert items[-1]["chip"] == "\\xf0\\x9f" and "text" not in items[-1]


def test_bytes_that_are_no_character_do_not_hold_back_what_follows() -> None:
    items = _items(_story(EMOJI[:2], "b", b"\xff", EMOJI[:1], EMOJI[1:]).state())
    assert [i.get("text", i.get("chip")) for i in items] == ["\\xf0\\x9f", "b", "\\xff", "😀"]


def test_a_special_token_is_a_named_chip() -> None:
    assert _items(_story("a", Special("<|im_end|>")).state())[-1]["chip"] == "<|im_end|>"


def test_hostile_tokens_are_data() -> None:
    story = _story(*HOSTILE).done()
    items = _items(story.state())
    shown = "".join(i.get("text", "") for i in items)
    assert "<script>alert(1)</script>" in shown and "x" * 10_000 in shown and "😀" in shown
    assert not set(shown) & set("\x00\x1b\u202e\ufffd")


@settings(deadline=None)
@given(st.lists(st.binary(max_size=4), max_size=30), st.lists(st.integers(0, 30), max_size=6))
def test_deltas_add_up_to_the_whole_and_lose_no_token(pieces: list[bytes], cuts: list[int]) -> None:
    data = b"".join(pieces).decode("utf-8", "ignore").encode()
    at, tokens = 0, []
    for piece in pieces:
        if chunk := data[at : at + len(piece)]:
            tokens.append(chunk)
            at += len(piece)
    events = _story(*tokens).done().events
    state, base = RunState(), 0
    items: list[dict[str, Any]] = []
    for start, end in pairwise([0, *sorted(3 * cut for cut in cuts), len(events)]):
        state.apply_all(events[start:end])
        delta = text.delta(state, "r", base)
        base, items = delta["to"], items + delta["items"]
    assert sum(len(i["tokens"]) for i in items) == base == len(state.text)
    assert [i["at"] for i in items] == sorted({i["at"] for i in items})
    whole = "".join(i["text"] for i in text.delta(state, "r", 0)["items"] if "text" in i)
    assert whole == "".join(i["text"] for i in items if "text" in i)


def test_a_chosen_node_is_marked_in_the_text_itself_or_by_its_replacement() -> None:
    state = Story().round(["a", "b", "c"], 1, "B").round(["d"], 1, "e").state()
    assert [n.status for n in state.nodes] == [
        "accepted", "rejected", "ignored", "resampled", "accepted", "bonus",
    ]  # fmt: skip
    assert [text.place(state, n.id) for n in state.nodes] == [0, 3, 3, 3, 4, 5]
    assert text.place(state, None) is None


def test_a_draft_token_dropped_at_the_end_has_no_place_in_the_text() -> None:
    cut = Story().round(["a", "b"], 0, None).round(["c"], 0, "d").state()
    dropped, behind = cut.nodes[0], cut.nodes[-1]
    assert dropped.status == "rejected" and behind.status == "resampled"
    assert text.place(cut, dropped.id) is None, "another round's token is not what came in its place"
    assert text.place(Story().round(["a"], 0, None).state(), 0) is None
