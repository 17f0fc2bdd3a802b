"""What the target has drawn already is judged without asking again."""

from hypothesis import given
from hypothesis import strategies as st

from specviz.core.settings import Sampling
from specviz.targets.completions.owed import Owed, settle
from specviz.targets.completions.ways.shown import Lens
from tests.toys import LetterTokenizer, block

LENS = Lens(Sampling(), False, False, 3, LetterTokenizer())
IDS = st.lists(st.integers(0, 2), max_size=6).map(tuple)


@given(IDS, st.lists(IDS, min_size=1, max_size=6))
def test_all_that_is_owed_comes_out_in_its_order_whatever_is_drafted(
    owed: tuple[int, ...], drafts: list[tuple[int, ...]]
) -> None:
    out: tuple[int, ...] = ()
    left = owed
    for draft in drafts:
        settled, rest = settle(left, block(*draft), LENS)
        out, left = out + settled.token_ids, settled.owed
        assert out + left == owed
        assert all(d.final_id == d.draft_id for d in settled.decisions if d.status == "accepted")
        if rest is not None:
            # All that was owed is out, and the draft agreed with it: the rest of it is for the server.
            assert left == () and draft == settled.token_ids + rest.token_ids
            assert [d.status for d in settled.decisions] == ["accepted"] * len(settled.token_ids)
            break
        statuses = [d.status for d in settled.decisions if d.status != "ignored"]
        assert len(settled.decisions) == len(draft) + (statuses[-1] == "bonus")


def test_it_belongs_to_one_context() -> None:
    owed = Owed((1, 2), (0,))
    assert owed.behind([1, 2]) == (0,) and owed.behind([1]) == () == owed.behind([1, 2, 0])
    assert Owed().behind([]) == ()
