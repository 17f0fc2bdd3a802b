from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.views.feed import Cursor, Need


def test_the_next_message_starts_where_the_last_one_ended() -> None:
    cursor = Cursor()
    assert cursor.base("run", None) == 0
    cursor.sent = 40
    assert cursor.base("run", None) == 40


def test_a_new_run_starts_from_nothing() -> None:
    cursor = Cursor("one", sent=40)
    assert cursor.base("two", None) == 0


def test_a_request_is_answered_once() -> None:
    cursor = Cursor("run", sent=40)
    need: Need = {"n": 7, "rev": 12}
    assert cursor.base("run", need) == 12
    cursor.sent = 50
    assert cursor.base("run", need) == 50, "the browser's state still holds the old request"


def test_a_request_never_skips_ahead_nor_below_zero() -> None:
    assert Cursor("run", sent=10).base("run", {"n": 1, "rev": 99}) == 10
    assert Cursor("run", sent=10).base("run", {"n": 1, "rev": -5}) == 0


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=60))
def test_after_any_loss_of_messages_the_browser_has_everything(messages: list[tuple[int, bool]]) -> None:
    """A model of the browser's half: apply connected messages, request missing ones."""
    cursor, total, have, need, asked = Cursor("run"), 0, 0, None, 0

    def deliver(lost: bool) -> None:
        nonlocal have, need, asked
        base = cursor.base("run", need)
        cursor.sent = total
        if lost:
            return
        if base > have:
            asked += 1
            need = {"n": asked, "rev": have}
        else:
            have = total

    for grown, lost in messages:
        total += grown
        deliver(lost)
    deliver(False)
    deliver(False)
    assert have == total
