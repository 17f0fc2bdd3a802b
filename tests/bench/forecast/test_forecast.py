"""The ranking, and its sentence."""

from __future__ import annotations

import json

from specviz.bench.forecast.forecast import SCHEMA, Forecast, Prediction
from specviz.bench.sweep.plan import SweepPlan
from specviz.core.settings import Settings


def row(draft: str, k: int, speedup: float | None, tokens: float = 2.0, temperature: float = 0.0) -> Forecast:
    return Forecast(draft, k, temperature, "probabilistic", 0.5, 1.0, tokens, 3.0, speedup, 1.0, 2.0)


def prediction(*rows: Forecast) -> Prediction:
    plan = SweepPlan(Settings(target="toy"), ("a", "b", "none"), (1, 4))
    return Prediction(plan, False, rows, {0.0: 1.0}, {}, {0.0: {0: 1.0}}, 3, 90, 1.5, 1.0, 0.2)


PLAIN = row("none", 0, 1.0, 1.0)
MIXED = prediction(
    PLAIN, row("a", 1, 1.3), row("a", 4, 1.4), row("b", 1, 1.2), row("b", 4, 0.9), row("b", 1, 9.0, 2, 1.0)
)


def test_each_draft_is_ranked_at_its_best_k() -> None:
    assert [(r.draft, r.k) for r in MIXED.ranking(0.0, "probabilistic")] == [("a", 4), ("b", 1), ("none", 0)]


def test_of_two_equal_rounded_speed_ups_the_smaller_k_is_better() -> None:
    close = prediction(row("a", 8, 1.234), row("a", 4, 1.231), row("a", 1, 1.2), row("b", 2, 1.232))
    assert [(r.draft, r.k) for r in close.ranking(0.0, "probabilistic")] == [("b", 2), ("a", 4)]


def test_the_best_are_of_different_drafts_first_and_never_plain() -> None:
    assert [(r.draft, r.k) for r in MIXED.best(0.0, "probabilistic", 3)] == [("a", 4), ("b", 1), ("a", 1)]
    assert MIXED.best(0.0, "greedy") == []


def test_the_winner_in_a_sentence() -> None:
    assert MIXED.words(0.0, "probabilistic") == (
        "a with K = 4, 1.40 × plain decoding, is predicted to be the fastest; then b with K = 1 (1.20 ×)."
    )


def test_where_nothing_is_faster_it_says_so() -> None:
    slow = prediction(PLAIN, row("a", 1, 0.8), row("b", 4, 1.0))
    words = slow.words(0.0, "probabilistic")
    assert words == "Do not speculate here: the best would be b with K = 4, 1.00 × plain decoding."
    assert prediction(PLAIN).words(0.0, "probabilistic") == "There is no draft to rank."


def test_without_times_the_order_is_that_of_tokens_per_round() -> None:
    untimed = prediction(row("a", 1, None, 1.5), row("b", 4, None, 2.5))
    assert untimed.words(0.0, "probabilistic").startswith("By tokens per round: b with K = 4, a with K = 1.")


def test_the_json_has_everything_and_is_read_again() -> None:
    data = json.loads(json.dumps(MIXED.to_json(), allow_nan=False))
    assert data["schema"] == SCHEMA == "specviz.predict/1" and len(data["rows"]) == 6
    assert data["ranking"][0]["drafts"] == ["a", "b", "none"] and data["plain_ms"] == {"0": 1.0}
    assert data["plan"]["ks"] == [1, 4]
    assert Prediction.from_json(data) == MIXED
