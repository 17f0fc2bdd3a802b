"""Lookup first, a model when there is no match."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specviz.core.noise import Noise
from specviz.core.rounds import Candidate
from specviz.core.settings import Sampling
from specviz.drafters.combined import CombinedDrafter
from specviz.drafters.model import ModelDrafter
from tests.toys import LetterTokenizer, MarkovScorer

#: After token i comes i + 1, with probability 0.91.
TABLE = [[0.91 if j == (i + 1) % 10 else 0.01 for j in range(10)] for i in range(10)]


class Recording(MarkovScorer):
    def __init__(self) -> None:
        super().__init__(TABLE)
        self.seen: list[list[int]] = []
        self.resets = 0

    def score(self, token_ids, rows):  # type: ignore[no-untyped-def]
        self.seen.append(list(token_ids))
        return super().score(token_ids, rows)

    def reset(self) -> None:
        self.resets += 1


def combined(min_confidence: float = 0.0, max_context: int | None = None, **options: object) -> CombinedDrafter:
    model = ModelDrafter(
        "model:x", Recording(), LetterTokenizer(), min_confidence=min_confidence, max_context=max_context
    )
    return CombinedDrafter(model, **options)  # type: ignore[arg-type]


def propose(drafter: CombinedDrafter, context: Sequence[int], k: int = 4, temperature: float = 0.0) -> Candidate:
    proposal = drafter.propose(context, k, Sampling(temperature), Noise(0)).first
    return proposal


def sources(proposal: Candidate) -> str:
    """c for a copied token, m for a token of the model."""
    return "".join("c" if logprob is None else "m" for logprob in proposal.logprobs)


def scorer(drafter: CombinedDrafter) -> Recording:
    found = drafter._model._scorer
    assert isinstance(found, Recording)
    return found


def test_its_name_says_both() -> None:
    assert combined().name == "ngram+model:x"


def test_without_a_match_the_model_drafts_as_alone() -> None:
    drafter = combined()
    proposal = propose(drafter, [7, 3])
    alone = drafter._model.propose([7, 3], 4, Sampling(), Noise(0)).first
    assert proposal.token_ids == alone.token_ids == (4, 5, 6, 7) and sources(proposal) == "mmmm"
    assert proposal.logprobs == alone.logprobs and proposal.alternatives == alone.alternatives


def test_a_match_is_copied_to_the_end_of_the_block_and_the_model_is_not_asked() -> None:
    drafter = combined()
    proposal = propose(drafter, [1, 2, 3, 9, 9, 4, 0, 1, 2, 3])
    assert proposal.token_ids == (9, 9, 4, 0) and sources(proposal) == "cccc"
    assert scorer(drafter).seen == []
    assert all(q.prob(t) == 1.0 for t, q in zip(proposal.token_ids, proposal.q, strict=True))


def test_a_copy_goes_on_where_it_began_though_a_later_place_would_match_too() -> None:
    proposal = propose(combined(longest=1, shortest=1), [1, 2, 9, 2, 7, 1], k=2)
    assert (proposal.token_ids, sources(proposal)) == ((2, 9), "cc")


def test_a_match_that_the_models_token_completes_is_followed_from_there() -> None:
    drafter = combined(shortest=3)
    proposal = propose(drafter, [2, 3, 4, 8, 8, 1, 2, 3], k=4)
    assert (proposal.token_ids, sources(proposal)) == ((4, 8, 8, 1), "mccc")
    assert scorer(drafter).seen == [[2, 3, 4, 8, 8, 1, 2, 3]]


def test_the_model_is_given_what_was_copied_before() -> None:
    drafter = combined()
    propose(drafter, [1, 2, 3, 9, 9, 1, 2, 3], k=1)
    propose(drafter, [1, 2, 3, 9, 9, 1, 2, 3, 9, 5], k=1)
    assert scorer(drafter).seen == [[1, 2, 3, 9, 9, 1, 2, 3, 9, 5]]


@pytest.mark.parametrize(("shortest", "expected"), [(1, "cc"), (2, "cc"), (3, "mm")])
def test_short_matches_are_left_to_the_model(shortest: int, expected: str) -> None:
    assert sources(propose(combined(shortest=shortest), [2, 3, 8, 6, 2, 3], k=2)) == expected


def test_by_default_one_token_is_no_match_and_two_are() -> None:
    assert sources(propose(combined(), [3, 8, 6, 3], k=1)) == "m"
    assert sources(propose(combined(), [2, 3, 8, 6, 2, 3], k=1)) == "c"


def test_a_copied_stop_ends_the_draft() -> None:
    proposal = propose(combined(stop_ids=frozenset({9})), [1, 2, 3, 8, 9, 4, 0, 1, 2, 3])
    assert proposal.token_ids == (8, 9)


def test_a_drafted_stop_ends_the_draft() -> None:
    assert propose(combined(stop_ids=frozenset({5})), [7, 3]).token_ids == (4, 5)


def test_a_full_model_leaves_the_copies_and_says_so_where_there_are_none() -> None:
    limited = combined(max_context=8)
    assert propose(limited, [1, 2, 3, 9, 9, 4, 0, 1, 2, 3]).token_ids == (9, 9, 4, 0)
    draft = limited.propose([0, 2, 4, 6, 8, 1, 3, 5, 7], 4, Sampling(), Noise(0))
    assert draft.candidates == () and "context of 8 tokens is full" in draft.note
    draft = limited.propose([0, 2, 4, 6, 1, 5], 4, Sampling(), Noise(0))
    assert len(draft.first) == 2 and "full" in draft.note


@pytest.mark.parametrize(("bar", "expected"), [(0.0, "mccccc"), (0.5, "mcc"), (0.7, "mc"), (0.8, "m")])
def test_copies_count_towards_the_end_of_a_draft(bar: float, expected: str) -> None:
    """0.91, then 0.8 for each copy: 0.73, 0.58, 0.47."""
    drafter = combined(min_confidence=bar, lookup_confidence=0.8, shortest=3)
    proposal = propose(drafter, [2, 3, 4, 8, 8, 1, 2, 3], k=6)
    assert sources(proposal) == expected


def test_the_first_copy_is_always_made() -> None:
    drafter = combined(min_confidence=0.95, lookup_confidence=0.5)
    assert sources(propose(drafter, [1, 2, 3, 9, 9, 1, 2, 3])) == "c"


def test_reset_forgets_the_models_cache() -> None:
    drafter = combined()
    drafter.reset()
    assert scorer(drafter).resets == 1


def test_along_a_text_copies_are_looked_up_in_what_stands_there_and_not_in_the_draft() -> None:
    text = [5, 0, 7, 9, 1, 5, 0, 7, 9]
    steps = combined(shortest=3).follow(text, 6, Sampling())(0, 3)
    found = [(int(step.q.ids[0]), step.copied) for step in steps if step.q.ids is not None]
    assert found == [(6, False), (1, False), (9, True)]
