"""Prompt lookup."""

import pytest

from specviz.core.errors import SettingsError
from specviz.core.noise import Noise
from specviz.core.settings import Sampling
from specviz.drafters.ngram import NgramDrafter


def propose(context: list[int], k: int = 4, **options: object) -> tuple[int, ...]:
    drafter = NgramDrafter(**options)  # type: ignore[arg-type]
    proposal = drafter.propose(context, k, Sampling(0.8), Noise(0)).first
    assert all(row.prob(t) == 1.0 for row, t in zip(proposal.q, proposal.token_ids, strict=True))
    return proposal.token_ids


def test_copies_what_followed() -> None:
    assert propose([1, 2, 3, 4, 5, 9, 1, 2], k=3) == (3, 4, 5)


def test_the_longest_match_wins_over_the_most_recent() -> None:
    assert propose([7, 1, 2, 50, 8, 2, 60, 7, 1, 2], k=1) == (50,)


def test_among_equals_the_most_recent_wins() -> None:
    assert propose([1, 2, 50, 1, 2, 60, 1, 2], k=1) == (60,)


def test_a_repeated_phrase_goes_on_repeating() -> None:
    assert propose([1, 2, 1, 2], k=5) == (1, 2, 1, 2, 1)


@pytest.mark.parametrize("context", [[], [1], [1, 2, 3]])
def test_no_match_is_an_empty_draft(context: list[int]) -> None:
    assert propose(context) == ()


def test_a_draft_ends_at_an_end_of_turn() -> None:
    """Reported as transformers PR#31301."""
    assert propose([1, 2, 3, 99, 5, 1, 2], stop_ids=frozenset({99})) == (3, 99)


def test_lengths_bound_the_match() -> None:
    assert propose([1, 2, 50, 9, 2], shortest=2) == ()
    assert propose([7, 1, 2, 50, 1, 2, 60, 7, 1, 2], k=1, longest=2) == (60,)
    with pytest.raises(SettingsError):
        NgramDrafter(longest=1, shortest=2)


def test_a_match_that_only_overlaps_itself() -> None:
    assert propose([5, 5], k=3) == (5, 5, 5)
