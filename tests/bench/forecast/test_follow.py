"""Expected counts on a text are those of the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specviz.bench.forecast.follow import Expected, FollowedBlock, expect, keep_probability, kept_in_text
from specviz.core.decoding import autoregressive, speculative
from specviz.core.events import Done
from specviz.core.ports import Drafter, Followable
from specviz.core.sampling import Row, to_probs, token_test
from specviz.core.settings import Rule, RuleName, Sampling, Settings
from specviz.drafters.ngram import NgramDrafter
from specviz.drafters.none import NoDrafter
from tests.toys import TOKENIZER, combined_draft, toy_draft, toy_target

STOPS = TOKENIZER.stop_ids
PROMPTS = [
    TOKENIZER.encode(f"the draft reads {word} the draft and then it reads") for word in ("", "one", "so", "code")
]
DRAFTERS: dict[str, Callable[[], Drafter]] = {
    "toy": lambda: toy_draft(stop_ids=STOPS),
    "toy, ends early": lambda: toy_draft(min_confidence=0.3, stop_ids=STOPS),
    "ngram": lambda: NgramDrafter(stop_ids=STOPS),
    "ngram and toy": combined_draft,
    "none": NoDrafter,
}


def done(events) -> Done:  # type: ignore[no-untyped-def]
    *_, last = events
    assert isinstance(last, Done)
    return last


def write(prompt: Sequence[int], wanted: Settings, seed: int, stop_ids: frozenset[int] | None = None) -> Done:
    return done(autoregressive(toy_target(stop_ids=stop_ids), prompt, wanted, seed=seed))


def blocks(
    drafter: Drafter, prompt: Sequence[int], text: Sequence[int], sampling: Sampling, rule: Rule
) -> list[FollowedBlock]:
    assert isinstance(drafter, Followable)
    ids = [*prompt, *text]
    steps_at = drafter.follow(ids, len(prompt), sampling)
    rows = toy_target().scorer.score(ids[:-1], len(text))
    found = []
    for at in range(len(text)):
        steps = steps_at(at, 16)
        chances = [
            kept_in_text(to_probs(rows[at + j], sampling), step.q, text[at + j], rule)
            for j, step in enumerate(steps[: len(text) - at])
        ]
        chances += [0.0] * (len(steps) - len(chances))
        found.append(FollowedBlock(tuple(chances), tuple(s.copied for s in steps)))
    return found


# Counts.


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("max_tokens", [1, 2, 60])
def test_at_temperature_0_the_counts_are_those_of_the_loop(name: str, max_tokens: int) -> None:
    for stop_ids in (STOPS, frozenset[int]()):
        for prompt in PROMPTS:
            wanted = Settings(target="toy", draft="toy", max_tokens=max_tokens)
            text = write(prompt, wanted, 0, stop_ids).token_ids
            found = blocks(DRAFTERS[name](), prompt, text, wanted.sampling, wanted.acceptance_rule)
            for k in range(1, 17):
                own = Settings(target="toy", draft="toy", k=k, max_tokens=max_tokens)
                target = toy_target(stop_ids=stop_ids)
                live = done(speculative(DRAFTERS[name](), target, prompt, own, seed=0))
                assert live.token_ids == text
                expected = expect(found, k, max_tokens)
                assert (expected.rounds, expected.tested, expected.accepted, expected.tokens) == (
                    live.total_rounds,
                    live.total_tested,
                    live.total_accepted,
                    live.total_tokens,
                )
                # Behind a token that was refused a draft goes on from there, and may end at another place.
                assert k > 1 or expected.drafted == live.total_drafted
                assert sum(expected.lengths) == pytest.approx(expected.rounds)


@pytest.mark.parametrize("maker", [toy_draft, lambda: NgramDrafter(stop_ids=STOPS)])
def test_drafted_tokens_are_those_of_the_loop_where_no_draft_ends_on_its_own(maker: Callable[[], Drafter]) -> None:
    wanted = Settings(target="toy", draft="toy", max_tokens=50)
    prompt = PROMPTS[1]
    text = write(prompt, wanted, 0, frozenset()).token_ids
    found = blocks(maker(), prompt, text, wanted.sampling, wanted.acceptance_rule)
    for k in range(1, 17):
        own = Settings(target="toy", draft="toy", k=k, max_tokens=50)
        live = done(speculative(maker(), toy_target(stop_ids=frozenset()), prompt, own, seed=0))
        assert expect(found, k, 50).drafted == live.total_drafted


TABLE_P = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.5, 0.05, 0.45]])
TABLE_Q = np.array([[0.2, 0.5, 0.3], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]])


def rounds_by_the_rule(rule: Rule, last: int, made: int, length: int, k: int) -> float:
    """Expected rounds from here on, summed over every draft and every draw: the algorithm written out."""

    def next_round(token: int, drafted: int) -> float:
        return rounds_by_the_rule(rule, token, made + drafted + 1, length, k)

    def go(before: int, drafted: int) -> float:
        p, q = TABLE_P[before], TABLE_Q[before]
        if drafted == min(k, length - made - 1):
            return float(sum(p[y] * next_round(y, drafted) for y in range(3)))
        kept = np.minimum(p, q) if rule.name == "probabilistic" else p * q
        stays = sum(kept[x] * go(x, drafted + 1) for x in range(3))
        return float(stays + sum((p - kept)[y] * next_round(y, drafted) for y in range(3)))

    return 0.0 if made >= length else 1 + go(last, 0)


@pytest.mark.parametrize("name", ["probabilistic", "deterministic"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_over_all_texts_the_mean_is_that_of_the_algorithm(name: RuleName, k: int) -> None:
    """Exact: every text of five tokens, each as often as the target writes it."""
    rule, length, mean = Rule(name), 5, 0.0
    for text in product(range(3), repeat=length):
        before = [0, *text]
        weight = float(np.prod([TABLE_P[a, b] for a, b in pairwise(before)]))
        chances = [kept_in_text(TABLE_P[a], Row(TABLE_Q[a]), b, rule) for a, b in pairwise(before)]
        blocks = [FollowedBlock(tuple(chances[at:]), (False,) * (length - at)) for at in range(length)]
        mean += weight * expect(blocks, k, length).rounds
    assert mean == pytest.approx(rounds_by_the_rule(rule, 0, 0, length, k), abs=1e-12)


@pytest.mark.parametrize("name", ["toy", "toy, ends early", "ngram and toy"])
def test_above_temperature_0_the_means_are_those_of_the_loop(name: str) -> None:
    """The standard error of both means is near 1 % over 100 texts of up to 60 tokens."""
    wanted = Settings(target="toy", draft="toy", k=4, temperature=1.0, max_tokens=60)
    expected = Expected()
    rounds = tokens = tested = accepted = drafted = 0
    for seed in range(100):
        prompt = PROMPTS[seed % len(PROMPTS)]
        text = write(prompt, wanted, seed).token_ids
        found = blocks(DRAFTERS[name](), prompt, text, wanted.sampling, wanted.acceptance_rule)
        expected.add(expect(found, 4, wanted.max_tokens))
        live = done(speculative(DRAFTERS[name](), toy_target(), prompt, wanted, seed=seed + 1000))
        rounds, tokens = rounds + live.total_rounds, tokens + live.total_tokens
        tested, accepted = tested + live.total_tested, accepted + live.total_accepted
        drafted += live.total_drafted
    assert expected.tokens_per_round == pytest.approx(tokens / rounds, rel=0.04)
    assert expected.acceptance == pytest.approx(accepted / tested, abs=0.03)
    assert expected.drafted / expected.rounds == pytest.approx(drafted / rounds, rel=0.04)


def test_by_hand() -> None:
    """Three tokens, each kept with probability 1/2, K = 2."""
    found = expect([FollowedBlock((0.5, 0.5), (False, True))] * 3, 2, 3)
    # A round at 0 goes on at 1, 2 or behind the end with 1/2, 1/4, 1/4; at 1 one token may be drafted, at 2 none.
    assert found.rounds == 1 + 0.5 + (0.25 + 0.5 * 0.5)
    assert found.drafted == 2 + 0.5
    assert found.lengths[:3].tolist() == [0.5, 0.5, 1.0]
    assert found.reached[:2].tolist() == [1.5, 0.5] and found.kept[:2].tolist() == [0.75, 0.25]
    assert (found.tested, found.accepted) == (2.0, 1.0)
    assert (found.drawn, found.drawing, found.ended) == (1.5, 1.5, 0.0)
    assert found.tokens_per_round == 3 / 2.0 and found.acceptance == 0.5 and found.accepted_per_round == 0.5


def test_nothing_drafted_is_plain_decoding_and_has_no_acceptance() -> None:
    found = expect([FollowedBlock((), ())] * 5, 4, 9)
    assert (found.rounds, found.tokens_per_round, found.acceptance, found.ended) == (5, 1.0, None, 5)
    assert Expected().tokens_per_round is None


@given(
    st.lists(
        st.lists(st.floats(0, 1), max_size=16).map(lambda c: FollowedBlock(tuple(c), (False,) * len(c))), min_size=1
    ),
    st.integers(1, 16),
    st.integers(0, 9),
)
@settings(deadline=None)
def test_every_round_gives_at_least_one_token_and_at_most_its_block_and_one(
    found: list[FollowedBlock], k: int, more: int
) -> None:
    expected = expect(found, k, len(found) + more)
    assert 1 - 1e-9 <= expected.rounds <= len(found) + 1e-9
    # Every emitted token was accepted or is the one of a round; the last round may have none of its own.
    assert expected.accepted <= len(found) + 1e-9
    assert len(found) - 1e-9 <= expected.accepted + expected.rounds <= len(found) + 1 + 1e-9
    assert expected.accepted - 1e-9 <= expected.tested <= expected.drafted + 1e-9
    assert sum(expected.lengths) == pytest.approx(expected.rounds)


# The chance of a single token.

RULES = [Rule("probabilistic"), Rule("deterministic"), Rule("greedy"), Rule("threshold", 0.2)]
P = np.array([0.5, 0.3, 0.15, 0.05, 0.0])
Q = np.array([0.2, 0.45, 0.05, 0.2, 0.1])


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
@pytest.mark.parametrize("row", [Row(Q), Row(Q[[1, 3]] / 0.65, np.array([1, 3]))])
def test_the_chance_is_how_often_the_rule_keeps(rule: Rule, row: Row) -> None:
    rng, n = np.random.default_rng(0), 4000
    ids = range(len(row.probs)) if row.ids is None else row.ids
    accepted = sum(token_test(rule, Row(P), int(x), row, rng).kept for x in rng.choice(ids, n, p=row.probs))
    assert keep_probability(P, row, rule) == pytest.approx(accepted / n, abs=0.03)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_ids_beyond_the_targets_vocabulary_are_never_kept(rule: Rule) -> None:
    sparse, full = Row(np.array([0.7, 0.3]), np.array([0, 9])), Row(np.array([0.7, 0, 0, 0, 0, 0, 0, 0, 0, 0.3]))
    assert keep_probability(P, sparse, rule) == keep_probability(P, full, rule) <= 0.7


def test_on_a_text_of_the_targets_own_the_mean_chance_is_the_chance() -> None:
    row = Row(Q)
    for rule in RULES[:2]:
        mean = sum(P[y] * kept_in_text(P, row, y, rule) for y in range(5))
        assert mean == pytest.approx(keep_probability(P, row, rule))
    assert kept_in_text(P, row, 0, RULES[2]) == keep_probability(P, row, RULES[2]) == 0.2
    assert kept_in_text(P, row, 3, RULES[3]) == keep_probability(P, row, RULES[3]) == pytest.approx(0.65)


def test_a_token_whose_p_was_rounded_to_0_is_kept_if_the_draft_has_it() -> None:
    assert kept_in_text(P, Row(Q), 4, RULES[0]) == 1.0
    assert kept_in_text(P, Row.one_hot(0), 4, RULES[0]) == 0.0
