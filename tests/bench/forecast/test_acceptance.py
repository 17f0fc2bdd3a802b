"""Acceptance along a text: what a round with K = 1 keeps, from every token of it."""

import numpy as np
import pytest

from specviz.bench.forecast.acceptance import acceptance_along
from specviz.bench.forecast.predict import predict
from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.plan import SweepPlan
from specviz.core.ports import Followable
from specviz.core.sampling import overlap, row_of
from specviz.core.settings import Sampling, Settings
from specviz.drafters.model import ModelDrafter
from specviz.drafters.ngram import NgramDrafter
from specviz.engines.toy import ToyScorer, ToyTokenizer
from specviz.setup.builder import Builder

TOY = ToyTokenizer()
IDS = [5, 9, 3, *range(20, 150)]  # longer than two chunks of rows


def drafter(**options: object) -> ModelDrafter:
    return ModelDrafter("toy", ToyScorer(TOY, 0.5), TOY, stop_ids=TOY.stop_ids, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("sampling", [Sampling(0.0), Sampling(0.8), Sampling(1.0, top_k=20, top_p=0.9)])
def test_each_rate_is_the_overlap_of_both_rows_there(sampling: Sampling) -> None:
    found = acceptance_along(ToyScorer(TOY), drafter(), IDS, 3, sampling)
    p, q = ToyScorer(TOY).score(IDS[:-1], len(IDS) - 3), ToyScorer(TOY, 0.5).score(IDS[:-1], len(IDS) - 3)
    expected = [overlap(row_of(a, sampling), row_of(b, sampling)) for a, b in zip(p, q, strict=True)]
    np.testing.assert_allclose(found, expected)
    assert len(found) == len(IDS) - 3 and 0 < found.mean() < 1


def test_a_draft_that_would_end_early_still_drafts_the_first_token() -> None:
    np.testing.assert_array_equal(
        acceptance_along(ToyScorer(TOY), drafter(min_confidence=0.9), IDS, 3, Sampling(0.8)),
        acceptance_along(ToyScorer(TOY), drafter(), IDS, 3, Sampling(0.8)),
    )


def test_nothing_is_accepted_where_nothing_is_drafted() -> None:
    found = acceptance_along(ToyScorer(TOY), NgramDrafter(3, 2, TOY.stop_ids), IDS, 3, Sampling(0.0))
    assert found.tolist() == [0.0] * (len(IDS) - 3)


def test_it_is_the_acceptance_that_a_prediction_has_for_the_first_round() -> None:
    """On a given text of two tokens there is one round, which drafts the first of them."""
    settings = Settings(target="toy", draft="toy", max_tokens=2, temperature=0.8)
    plan = SweepPlan(settings, drafts=("toy",), ks=(1,), temperatures=(0.8,))
    pair = Builder({}).build(settings)
    prompt = BenchPrompt("1", "toy", " the draft", answer=" model proposes tokens")
    [row] = predict(plan, [prompt], lambda _: pair, given=True).rows
    ids = TOY.encode(TOY.chat(prompt.text))
    text = [*ids, *TOY.encode(prompt.answer)[:2]]
    assert isinstance(pair.drafter, Followable)
    found = acceptance_along(ToyScorer(TOY), pair.drafter, text, len(ids), Sampling(0.8))
    assert row.acceptance == pytest.approx(found[0]) and 0 < found[0] < 1
