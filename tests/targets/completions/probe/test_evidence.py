"""What a probe concludes, from rows made by hand."""

import math

import pytest

from specviz.targets.completions.probe import evidence
from specviz.targets.completions.values import Answer, Choice, Likely, ScoredToken


def row(token_id: int, *logprobs: float) -> ScoredToken:
    """A row of one token, where token i has the i-th log-probability."""
    top = sorted((Likely(i, str(i), v) for i, v in enumerate(logprobs)), key=lambda t: -t.logprob)
    return ScoredToken(token_id, str(token_id), logprobs[token_id], tuple(top))


def choice(made: ScoredToken) -> Choice:
    return Choice(made.text, (made,), (), None if made.token_id is None else (made.token_id,))


@pytest.mark.parametrize(
    ("ours", "theirs", "alike"),
    [
        (" the", " the", True),
        ("the", " the", True),  # SentencePiece drops a first space
        ("the", "▁the", True),
        (" the", "Ġthe", True),
        ("", "<|end|>", True),  # special tokens are written in many ways
        ("\ufffd", "x", True),  # and so are parts of characters
        (" the", " a", False),
        (None, " the", False),  # an id beyond the vocabulary
        (None, "", True),
    ],
)
def test_reads_alike(ours: str | None, theirs: str, alike: bool) -> None:
    assert evidence.reads_alike(ours, theirs) is alike


def test_a_row_belongs_where_its_best_token_is_generated() -> None:
    assert evidence.belongs(row(1, -0.3, -2.0, -3.0), row(0, -0.3, -2.0, -3.0))
    assert not evidence.belongs(row(1, -0.3, -2.0, -3.0), row(1, -2.0, -0.3, -3.0))
    assert evidence.belongs(row(1, -0.8, -0.9), row(1, -0.85, -0.84))  # nearly a tie
    assert not evidence.belongs(row(0, -0.3, -2.0), ScoredToken(0, "0", -1.5))  # the same token, another number


@pytest.mark.parametrize("temperature", [1.5, 2.0])
def test_before_or_after_the_temperature(temperature: float) -> None:
    raw = [-0.4, -1.6, -3.0]
    weights = [math.exp(v / temperature) for v in raw]
    hot = [math.log(w / sum(weights)) for w in weights]
    cold = choice(row(0, *raw))
    assert evidence.after_temperature(cold, choice(row(0, *raw)), temperature) is False
    assert evidence.after_temperature(cold, choice(row(2, *hot)), temperature) is True
    assert evidence.after_temperature(cold, choice(row(0, -0.1, -9.0, -9.5)), temperature) is None
    assert evidence.after_temperature(cold, Choice("x"), temperature) is None


def test_a_tokens_own_log_probability_can_be_enough() -> None:
    cold = Choice("a", (ScoredToken(0, "a", -1.2),), (), (0,))
    assert evidence.after_temperature(cold, cold, 2.0) is False
    assert evidence.after_temperature(cold, Choice("a", (ScoredToken(0, "a", 0.0),), (), (0,)), 2.0) is True
    assert evidence.after_temperature(cold, Choice("b", (ScoredToken(1, "b", 0.0),), (), (1,)), 2.0) is None


def test_the_chance_of_the_best_token_is_bounded_from_above() -> None:
    raw = [math.log(p) for p in (0.5, 0.3, 0.1, 0.06, 0.04)]
    true = math.sqrt(0.5) / sum(math.sqrt(math.exp(v)) for v in raw)
    assert evidence.likely_best(choice(row(0, *raw)), 2.0) == pytest.approx(true)
    few = choice(ScoredToken(0, "0", raw[0], row(0, *raw).top[:2]))
    assert true <= evidence.likely_best(few, 2.0) < 0.6
    assert evidence.likely_best(Choice("x"), 2.0) == 0.5


def test_alternatives_count_by_their_ids() -> None:
    named, unnamed = (
        row(0, -0.5, -1.5),
        ScoredToken(None, "a", -0.5, (Likely(None, "a", -0.5), Likely(None, "b", -1.5))),
    )
    assert evidence.most_alternatives(Answer((choice(named),)), 20) == 2
    assert evidence.most_alternatives(Answer((choice(unnamed),)), 20) == 0
    assert evidence.most_alternatives(Answer((choice(row(0, math.log(0.5), math.log(0.5))),)), 20) == 20
