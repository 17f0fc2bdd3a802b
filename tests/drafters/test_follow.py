"""`follow` gives what `propose` would draft at each position of a text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from specviz.core.noise import Noise
from specviz.core.ports import Drafter, Followable, Step
from specviz.core.sampling import to_probs
from specviz.core.settings import Sampling
from specviz.drafters.ngram import NgramDrafter
from specviz.drafters.none import NoDrafter
from tests.toys import TOKENIZER, combined_draft, pruned_draft, toy_draft, toy_target

STOPS = TOKENIZER.stop_ids
MAKERS: dict[str, Callable[[], Drafter]] = {
    "model": lambda: toy_draft(stop_ids=STOPS),
    "model, far off": lambda: toy_draft(2.5, stop_ids=STOPS),
    "model, context full on the way": lambda: toy_draft(max_context=60),
    "model, context full before": lambda: toy_draft(max_context=5),
    "model, its own vocabulary": lambda: pruned_draft(stop_ids=STOPS),
    "model, a limit of its vocabulary": lambda: toy_draft(vocab_limit=TOKENIZER.end_id),
    "model, ends early": lambda: toy_draft(min_confidence=0.3, stop_ids=STOPS),
    "ngram": NgramDrafter,
    "ngram, longer matches": lambda: NgramDrafter(4, 2, STOPS),
    "ngram and model": combined_draft,
    "ngram and model, longer matches": lambda: combined_draft(shortest=3),
    "ngram and model, ends early": lambda: combined_draft(min_confidence=0.3),
    "ngram and model, full": lambda: combined_draft(max_context=40),
    "none": NoDrafter,
}
PROMPT = TOKENIZER.encode("the draft reads the draft and writes")


def text_of(seed: int, temperature: float, length: int = 90) -> list[int]:
    """The prompt and a continuation by the toy target, past stop tokens, so that some are inside the text."""
    target, rng = toy_target(), np.random.default_rng(seed)
    ids = PROMPT + [int(rng.integers(TOKENIZER.end_id)), int(rng.integers(TOKENIZER.end_id))]
    for _ in range(length):
        probs = to_probs(target.scorer.score(ids, 1)[0], Sampling(max(temperature, 0.01)))
        ids.append(int(rng.choice(len(probs), p=probs)))
    return ids


TEXTS = [text_of(seed, temperature) for seed in range(3) for temperature in (0.0, 1.0)]


def only(step: Step) -> int:
    assert step.q.ids is not None and len(step.q.ids) == 1
    return int(step.q.ids[0])


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("k", [1, 3, 16])
def test_at_temperature_0_it_follows_what_it_proposes(name: str, k: int) -> None:
    drafter, other = MAKERS[name](), MAKERS[name]()
    assert isinstance(drafter, Followable)
    start, greedy = len(PROMPT), Sampling(0.0)
    seen = set()
    for text in TEXTS:
        steps_at = drafter.follow(text, start, greedy)
        for at in range(len(text) - start):
            proposal = other.propose(text[: start + at], k, greedy, Noise(0)).first
            steps, theirs, own = steps_at(at, k), proposal.token_ids, text[start + at :]
            equal = next((j for j, (a, b) in enumerate(zip(theirs, own, strict=False)) if a != b), None)
            if equal is None:
                # All draft tokens are the text's own; the block ends at the end of the text at the latest.
                reached = min(len(theirs), len(own))
                assert [only(s) for s in steps[:reached]] == list(theirs[:reached])
                assert len(steps) == len(theirs) or len(steps) == len(own)
            else:
                assert [only(s) for s in steps[: equal + 1]] == list(theirs[: equal + 1])
            seen.add(equal is None)
    assert k > 1 or seen == ({True} if name in ("none", "model, context full before") else {True, False})


@pytest.mark.parametrize("name", MAKERS)
def test_the_steps_for_a_smaller_k_are_the_first_of_them(name: str) -> None:
    text = TEXTS[1]
    for temperature in (0.0, 1.0):
        steps_at = MAKERS[name]().follow(text, len(PROMPT), Sampling(temperature))  # type: ignore[attr-defined]
        for at in range(0, 90, 7):
            long, short = steps_at(at, 16), steps_at(at, 5)
            assert len(short) == min(5, len(long))
            for a, b in zip(long, short, strict=False):
                np.testing.assert_array_equal(a.q.dense(400), b.q.dense(400))


@pytest.mark.parametrize("name", ["model", "model, its own vocabulary", "model, a limit of its vocabulary"])
def test_above_temperature_0_a_step_has_the_q_that_is_drawn_from(name: str) -> None:
    drafter, other, text = MAKERS[name](), MAKERS[name](), TEXTS[1]
    sampling = Sampling(0.7, top_k=9, top_p=0.9)
    steps_at = drafter.follow(text, len(PROMPT), sampling)  # type: ignore[attr-defined]
    for at in range(80):
        for j, step in enumerate(steps_at(at, 4)):
            ids = text[: len(PROMPT) + at + j]
            proposal = other.propose(ids, 1, sampling, Noise(0)).first
            np.testing.assert_allclose(step.q.dense(400), proposal.q[0].dense(400))
            assert not step.copied


def test_copies_are_told_from_draws() -> None:
    text = [*PROMPT, *PROMPT]
    kinds = [
        {s.copied for at in range(len(PROMPT)) for s in drafter.follow(text, len(PROMPT), Sampling(1.0))(at, 4)}
        for drafter in (toy_draft(), NgramDrafter(), combined_draft(shortest=3))
    ]
    assert kinds == [{False}, {True}, {True, False}]


def test_a_text_is_read_in_few_passes() -> None:
    drafter, passes = toy_draft(), []
    score = drafter._scorer.score

    def counted(ids, rows):  # type: ignore[no-untyped-def]
        passes.append(rows)
        return score(ids, rows)

    drafter._scorer.score = counted  # type: ignore[method-assign]
    text = TEXTS[0] * 3
    steps_at = drafter.follow(text, 10, Sampling(1.0))
    for at in range(len(text) - 10):
        steps_at(at, 16)
    assert sum(passes) == len(text) - 10 and len(passes) == -(-(len(text) - 10) // 64)
