"""The contract of every drafter."""

from collections.abc import Callable

import pytest

from specviz.core.noise import Noise
from specviz.core.ports import Drafter
from specviz.core.settings import Sampling
from specviz.drafters.ngram import NgramDrafter
from specviz.drafters.none import NoDrafter
from tests.toys import TOKENIZER, combined_draft, pruned_draft, toy_draft

CONTEXT = TOKENIZER.encode("the draft reads the draft")
MAKERS: dict[str, Callable[[], Drafter]] = {
    "model": lambda: toy_draft(stop_ids=TOKENIZER.stop_ids),
    "model, full context": lambda: toy_draft(max_context=len(CONTEXT)),
    "model, its own vocabulary": lambda: pruned_draft(stop_ids=TOKENIZER.stop_ids),
    "model, ends early": lambda: toy_draft(min_confidence=0.3, stop_ids=TOKENIZER.stop_ids),
    "ngram": NgramDrafter,
    "ngram and model": lambda: combined_draft(stop_ids=TOKENIZER.stop_ids),
    "ngram and model, longer matches": lambda: combined_draft(shortest=3),
    "ngram and model, ends early": lambda: combined_draft(min_confidence=0.3),
    "none": NoDrafter,
}


@pytest.fixture(params=MAKERS)
def drafter(request: pytest.FixtureRequest) -> Drafter:
    return MAKERS[request.param]()


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("k", [1, 4, 16])
def test_each_token_comes_with_the_q_it_was_drawn_from(drafter: Drafter, k: int, temperature: float) -> None:
    proposal = drafter.propose(CONTEXT, k, Sampling(temperature), Noise(0)).first
    size = len(proposal.token_ids)
    assert size <= k
    lengths = {len(x) for x in (proposal.q, proposal.logprobs, proposal.entropies, proposal.alternatives)}
    assert lengths | {len(proposal.times_ms)} == {size}
    for token, row in zip(proposal.token_ids, proposal.q, strict=True):
        assert row.prob(token) > 0 and row.probs.sum() == pytest.approx(1.0)
        assert temperature > 0 or row.prob(token) == 1.0


def test_equal_seeds_give_equal_drafts_and_the_context_is_left_alone(drafter: Drafter) -> None:
    before = list(CONTEXT)
    first, again = (drafter.propose(CONTEXT, 6, Sampling(1.5), Noise(0)).first for _ in range(2))
    drafter.reset()
    third = drafter.propose(CONTEXT, 6, Sampling(1.5), Noise(0)).first
    assert first.token_ids == again.token_ids == third.token_ids and before == CONTEXT


def test_it_has_a_name_and_says_why_it_stopped(drafter: Drafter) -> None:
    assert drafter.name
    if drafter.max_context is not None and drafter.max_context <= len(CONTEXT):
        draft = drafter.propose(CONTEXT, 4, Sampling(), Noise(0))
        assert draft.candidates == () and "full" in draft.note
