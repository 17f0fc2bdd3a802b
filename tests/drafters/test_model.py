"""A model as drafter: its own vocabulary, and drafts that end early."""

from __future__ import annotations

import numpy as np
import pytest

from specviz.core.noise import Noise
from specviz.core.rounds import Candidate
from specviz.core.sampling import to_probs
from specviz.core.settings import Sampling
from specviz.drafters.model import ModelDrafter
from tests.toys import PRUNED, TOKENIZER, FixedScorer, LetterTokenizer, MarkovScorer, pruned_draft, toy_draft

GREEDY = Sampling()
CONTEXT = TOKENIZER.encode("the draft reads and writes the draft")


def propose(drafter: ModelDrafter, k: int = 6, sampling: Sampling = GREEDY, seed: int = 0) -> Candidate:
    proposal = drafter.propose(CONTEXT, k, sampling, Noise(seed)).first
    return proposal


def letters(probs: list[float], tokens: list[int], **options: object) -> ModelDrafter:
    ids = np.array(tokens, dtype=np.int64)
    return ModelDrafter("letters", FixedScorer(probs), LetterTokenizer(), tokens=ids, **options)  # type: ignore[arg-type]


# Its own vocabulary.


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_everything_in_a_proposal_speaks_of_the_targets_tokens(temperature: float) -> None:
    proposal = letters([0.2, 0.7, 0.1], [1, 4, 8]).propose([0], 3, Sampling(temperature), Noise(1)).first
    assert set(proposal.token_ids) <= {1, 4, 8}
    for token, q, logprob, best in zip(
        proposal.token_ids, proposal.q, proposal.logprobs, proposal.alternatives, strict=True
    ):
        dense = q.dense(10)
        expected = [0, 0.2, 0, 0, 0.7, 0, 0, 0, 0.1, 0] if temperature else np.eye(10)[4]
        np.testing.assert_allclose(dense, expected, atol=1e-6)
        assert logprob == pytest.approx(np.log({1: 0.2, 4: 0.7, 8: 0.1}[token]), abs=1e-5)
        assert [(a.token_id, a.token) for a in best] == [(4, "e"), (1, "b"), (8, "i")]
        np.testing.assert_allclose([a.prob for a in best], dense[[4, 1, 8]])


def test_q_is_the_row_that_was_drawn_from_after_the_settings() -> None:
    sampling = Sampling(0.7, top_k=4, top_p=0.9)
    drafter = pruned_draft()
    ids = list(CONTEXT)
    proposal = propose(drafter, sampling=sampling)
    for token, q in zip(proposal.token_ids, proposal.q, strict=True):
        own = to_probs(drafter._scorer.score(ids, 1)[0], sampling)
        assert q.ids is not None and set(q.ids.tolist()) <= set(PRUNED) and np.all(np.diff(q.ids) > 0)
        np.testing.assert_array_equal(q.dense(TOKENIZER.vocab_size)[PRUNED], own)
        assert q.prob(token) > 0 and q.prob(TOKENIZER.first_half_id) == 0.0
        ids.append(token)


def test_equal_draws_with_and_without_a_map_of_all_tokens() -> None:
    everything = np.arange(TOKENIZER.vocab_size)
    for temperature in (0.0, 1.3):
        sampling = Sampling(temperature)
        plain, mapped = (propose(toy_draft(tokens=t), sampling=sampling) for t in (None, everything))
        assert plain.token_ids == mapped.token_ids and plain.alternatives == mapped.alternatives
        assert plain.logprobs == mapped.logprobs and plain.entropies == mapped.entropies


def test_a_draft_ends_at_a_stop_of_the_target() -> None:
    proposal = letters([0.1, 0.8, 0.1], [1, 4, 8], stop_ids=frozenset({4})).propose([0], 5, Sampling(), Noise(0)).first
    assert proposal.token_ids == (4,)
    proposal = letters([0.1, 0.8, 0.1], [1, 4, 8], stop_ids=frozenset({1})).propose([0], 5, Sampling(), Noise(0)).first
    assert proposal.token_ids == (4,) * 5


def test_the_limit_is_one_of_target_ids() -> None:
    drafter = letters([0.1, 0.2, 0.7], [1, 4, 8], vocab_limit=8)
    proposal = drafter.propose([0], 40, Sampling(1.0), Noise(0)).first
    assert set(proposal.token_ids) == {1, 4}
    assert proposal.q[0].prob(4) == pytest.approx(2 / 3)


# Ending early.


def certain(probability: float) -> list[list[float]]:
    """A draft model that gives token i + 1 after i this probability."""
    rest = (1 - probability) / 3
    return [[probability if j == (i + 1) % 4 else rest for j in range(4)] for i in range(4)]


def length(table: list[list[float]], bar: float, k: int = 16, sampling: Sampling = GREEDY) -> int:
    drafter = ModelDrafter("sure", MarkovScorer(table), LetterTokenizer(), min_confidence=bar)
    proposal = drafter.propose([0], k, sampling, Noise(0)).first
    return len(proposal.token_ids)


@pytest.mark.parametrize(
    ("probability", "bar", "expected"),
    [
        (0.8, 0.0, 16),
        (0.8, 0.3, 5),  # 0.8^5 = 0.33, 0.8^6 = 0.26
        (0.8, 0.5, 3),
        (0.8, 0.85, 1),  # the first is always drafted
        (0.4, 0.5, 1),
        (0.999, 0.9, 16),
    ],
)
def test_a_draft_ends_where_the_product_of_its_chances_falls_below_the_bar(
    probability: float, bar: float, expected: int
) -> None:
    assert length(certain(probability), bar) == expected


def test_at_a_temperature_the_chance_is_that_after_the_settings() -> None:
    table = certain(0.7)
    assert length(table, 0.5, sampling=Sampling(0.0)) == 1
    assert length(table, 0.5, sampling=Sampling(0.3)) > 3
    # One token is left: the probability before the settings is used, since after them it would always be 1.
    assert length(table, 0.5, sampling=Sampling(1.0, top_k=1)) == 1


def test_no_row_is_paid_for_that_cannot_help() -> None:
    calls = []

    class Counting(MarkovScorer):
        def score(self, token_ids, rows):  # type: ignore[no-untyped-def]
            calls.append(len(token_ids))
            return super().score(token_ids, rows)

    drafter = ModelDrafter("sure", Counting(certain(0.4)), LetterTokenizer(), min_confidence=0.5)
    drafter.propose([0], 8, Sampling(), Noise(0))
    assert calls == [1]


class Opened(Noise):
    """Noise that keeps its stream for inspection."""

    rng: np.random.Generator

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        object.__setattr__(self, "rng", super().draft())

    def draft(self, candidate: int = 0) -> np.random.Generator:
        return self.rng


def test_where_a_draft_ends_depends_on_nothing_that_was_drawn_there() -> None:
    """The same prefix ends at the same position whatever the next draw would be, and the end takes no draw."""
    drafter = toy_draft(min_confidence=0.3)
    ends: dict[tuple[int, ...], bool] = {}
    spent = set()
    for seed in range(300):
        noise = Opened(seed)
        ids = drafter.propose(CONTEXT, 6, Sampling(1.0), noise).first.token_ids
        for n in range(1, len(ids) + 1):
            if n < 6:
                assert ends.setdefault(ids[:n], n == len(ids)) == (n == len(ids))
        fresh = Noise(seed).draft()
        fresh.random(len(ids))
        spent.add(noise.rng.random() == fresh.random())
    assert set(ends.values()) == {True, False} and spent == {True}
