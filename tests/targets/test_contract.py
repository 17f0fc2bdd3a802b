"""The contract of every target."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeVar

import msgspec
import numpy as np
import pytest

from specviz.core import codec
from specviz.core.alternatives import WEIGHED
from specviz.core.errors import IncapableError
from specviz.core.events import Way
from specviz.core.noise import Noise
from specviz.core.ports import Drafter, Target
from specviz.core.rounds import Draft, Round, Verdict
from specviz.core.sampling import Row, to_probs
from specviz.core.settings import RULES, Rule, RuleName, Sampling
from specviz.drafters.ngram import NgramDrafter
from specviz.engines.toy import ToyScorer
from specviz.targets.simulated_network import SimulatedNetwork
from tests.targets.completions.remotes import TOY, WAYS, remote_target
from tests.targets.completions.toyserver import ToyServer
from tests.toys import TOKENIZER, asked, block, block_of, fixed_draft, fixed_target, pruned_draft, toy_draft, toy_target

T = TypeVar("T")

LOCAL: dict[str, Callable[[], Target]] = {
    "toy": toy_target,
    "fixed": lambda: fixed_target([0.1, 0.2, 0.7]),
    "far": lambda: SimulatedNetwork(toy_target(), 0.2, 0.1),
}


def remote(dialect: str, way: Way) -> Callable[[], Target]:
    return lambda: remote_target(ToyServer(SCORER, dialect, TOY), way)


SCORER = ToyScorer(TOY)
#: Draws of a server without a seed are not repeatable: batches and requests for several samples have no seed.
REPEATABLE = LOCAL | {f"{d}-{way}": remote(d, way) for d, way in WAYS if way == "generating"}
MAKERS = REPEATABLE | {f"{d}-{way}": remote(d, way) for d, way in WAYS if way != "generating"}


@pytest.fixture(params=MAKERS)
def target(request: pytest.FixtureRequest) -> Target:
    return MAKERS[request.param]()


@pytest.fixture(params=REPEATABLE)
def repeatable(request: pytest.FixtureRequest) -> Target:
    return REPEATABLE[request.param]()


def offers(target: Target, sampling: Sampling, rule: Rule) -> bool:
    """Whether the target supports the rule; if not, it says so before the first call."""
    try:
        target.guarantee(sampling, rule)
    except IncapableError:
        with pytest.raises(IncapableError):
            target.verify(asked([0], [block(1)], sampling, rule, 0))
        return False
    return True


def drafted_round(target: Target, number: int) -> Round:
    """A drawn draft of which most targets accept some tokens and reject some."""
    drafter = toy_draft() if target.capabilities.vocab_size > 3 else fixed_draft([0.4, 0.3, 0.3])
    noise, sampling = Noise(3, number), Sampling(1.0)
    return Round((0, 1), drafter.propose([0, 1], 4, sampling, noise), sampling, Rule(), noise)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("ids", [(), (0,), (2, 2, 1, 0)])
def test_decisions_are_kept_then_at_most_one_refused_then_ignored(
    target: Target, rule: RuleName, temperature: float, ids: tuple[int, ...]
) -> None:
    if not offers(target, Sampling(temperature), Rule(rule)):
        return
    for seed in range(20 if target.capabilities.full_rows else 6):
        candidates = [block(*ids)] if ids else []
        verdict = target.verify(asked([0, 1], candidates, Sampling(temperature), Rule(rule), seed))
        statuses = [d.status for d in verdict.decisions]
        kept = statuses.count("accepted")
        expected = ["accepted"] * kept
        expected += ["bonus"] if kept == len(ids) else ["rejected"] + ["ignored"] * (len(ids) - kept - 1)
        assert statuses == expected
        assert verdict.token_ids == tuple(d.final_id for d in verdict.decisions if d.final_id is not None)
        assert len(verdict.token_ids) == kept + 1
        assert verdict.guarantee == target.guarantee(Sampling(temperature), Rule(rule))
        for d in verdict.decisions:
            if d.status in ("accepted", "rejected") and not target.capabilities.full_rows:
                # A server gives some of these values, or none; those that it gives must be possible.
                assert all(x is None or 0 <= x <= 1 for x in (d.p, d.q, d.acceptance))
                assert d.final_logprob is None or d.final_logprob <= 0
            elif d.status in ("accepted", "rejected"):
                assert d.p is not None and d.acceptance is not None and 0 <= d.acceptance <= 1
                assert d.entropy is not None and d.entropy >= 0 and d.alternatives
            if d.status == "ignored":
                assert d.p is None and d.final_id is None


def test_equal_seeds_give_equal_verdicts_after_any_history(repeatable: Target) -> None:
    target = repeatable

    def ask() -> list[tuple[int, ...]]:
        return [target.verify(asked([0, 1], [block(2, 2)], Sampling(1.0), Rule(), n)).token_ids for n in range(5)]

    first = ask()
    target.verify(asked([1, 1, 1], [block(0)], Sampling(1.0), Rule(), 0))
    assert ask() == first
    target.reset()
    assert ask() == first


def test_probabilistic_draws_u_once_per_tested_token_and_keeps_below_it(target: Target) -> None:
    """No u at other positions, and none by targets that compare the draft with their own draws."""
    whole, rounds = target.capabilities.full_rows, 12
    draws = whole or target.capabilities.way == "scoring"
    decisions = [d for n in range(rounds) for d in target.verify(drafted_round(target, n)).decisions]
    tested = [d for d in decisions if d.status in ("accepted", "rejected")]
    assert {d.status for d in tested} == {"accepted", "rejected"}
    us = [d.u for d in decisions if d.u is not None]
    assert us == [d.u for d in tested if draws] and len(set(us)) == len(us)
    for d in tested:
        if d.u is not None:
            assert 0 <= d.u < 1 and d.acceptance is not None and (d.status == "accepted") == (d.u < d.acceptance)


def test_a_local_target_tests_a_block_with_the_first_draws_of_its_stream() -> None:
    for n in range(12):
        round = drafted_round(toy_target(), n)
        us = [d.u for d in toy_target().verify(round).decisions if d.u is not None]
        assert us and us == list(round.noise.target().random(len(us)))


def without_times(verdict: Verdict) -> Verdict:
    return replace(verdict, compute_ms=None, rule_ms=None, network_ms=None)


def through_json(value: T) -> T:
    return codec.from_json(json.loads(json.dumps(codec.to_json(value))), type(value))


def test_a_round_and_its_verdict_can_be_sent_as_json(repeatable: Target) -> None:
    for n in range(12):
        round = drafted_round(repeatable, n)
        verdict = repeatable.verify(round)
        assert through_json(verdict) == verdict
        repeatable.reset()
        assert without_times(repeatable.verify(through_json(round))) == without_times(verdict)
        plain = replace(round, draft=Draft(note="The draft model's context is full."), stream="shared")
        assert through_json(plain) == plain


def with_value(data: Any, path: Sequence[str | int], value: Any) -> Any:
    """A copy with one value changed."""
    copy = json.loads(json.dumps(data))
    *before, last = path
    reduce(lambda inside, key: inside[key], before, copy)[last] = value
    return copy


CANDIDATE: tuple[str | int, ...] = ("draft", "candidates", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("context_ids", 0), -1),
        (("context_ids", 0), 2**40),
        ((*CANDIDATE, "token_ids", 0), -1),
        ((*CANDIDATE, "q", 0, "probs", 0), 1.5),
        ((*CANDIDATE, "q", 0, "probs", 0), -0.5),
        ((*CANDIDATE, "q", 0, "probs", 0), math.nan),
        ((*CANDIDATE, "entropies", 0), -math.inf),
        ((*CANDIDATE, "times_ms", 0), math.inf),
        ((*CANDIDATE, "alternatives", 0, 0, 3), 2.0),
        ((*CANDIDATE, "drawn"), "somehow"),
        (("sampling", "temperature"), -1.0),
        (("sampling", "temperature"), math.nan),
        (("sampling", "top_k"), -1),
        (("sampling", "top_p"), 0.0),
        (("rule", "name"), "kind"),
        (("rule", "tau"), 1.5),
        (("noise", "seed"), -1),
        (("noise", "seed"), 2**64),
        (("noise", "round"), -1),
        (("stream",), "draft"),
    ],
    ids=str,
)
def test_a_round_with_an_impossible_value_is_refused(path: Sequence[str | int], value: object) -> None:
    data = codec.to_json(drafted_round(toy_target(), 0))
    codec.from_json(with_value(data, (*CANDIDATE, "entropies", 0), 0.5), Round)
    with pytest.raises(msgspec.ValidationError):
        codec.from_json(with_value(data, path, value), Round)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("token_ids", 0), -1),
        (("guarantee", "kind"), "GOOD"),
        (("guarantee", "epsilon"), 2.0),
        (("compute_ms",), math.inf),
        (("rule_ms",), "soon"),
        (("requests",), -1),
        (("winner",), -1),
        (("decisions", 0, "status"), "lost"),
        (("decisions", 0, "draft_id"), -1),
        (("decisions", 0, "final_id"), 2**40),
        (("decisions", 0, "p"), 1.5),
        (("decisions", 0, "q"), -0.5),
        (("decisions", 0, "acceptance"), math.nan),
        (("decisions", 0, "u"), 2.0),
        (("decisions", 0, "entropy"), -math.inf),
        (("decisions", 0, "overlap"), 1.5),
        (("decisions", 0, "candidate"), 256),
        (("decisions", 0, "weighed", 0, 2), 1.5),
    ],
    ids=str,
)
def test_a_verdict_with_an_impossible_value_is_refused(path: Sequence[str | int], value: object) -> None:
    data = codec.to_json(toy_target().verify(drafted_round(toy_target(), 0)))
    codec.from_json(with_value(data, ("decisions", 0, "p"), 0.5), Verdict)
    with pytest.raises(msgspec.ValidationError):
        codec.from_json(with_value(data, path, value), Verdict)


def test_two_candidates_are_refused(target: Target) -> None:
    with pytest.raises(ValueError, match="one candidate"):
        target.verify(asked([0], [block(1), block(2)], Sampling(), Rule(), 0))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0), Sampling(0.8, top_k=3), Sampling(1.3, top_p=0.7)])
@pytest.mark.parametrize("make_draft", [toy_draft, pruned_draft, lambda: NgramDrafter(shortest=1)])
def test_what_is_recorded_of_a_decision_is_what_it_was_decided_by(
    rule: RuleName, sampling: Sampling, make_draft: Callable[[], Drafter]
) -> None:
    """Weighed tokens and overlap of a local target, checked against whole rows."""
    context, tested, partly = TOKENIZER.encode("the draft the draft the"), 0, 0
    for seed in range(12):
        candidate = make_draft().propose(context, 4, sampling, Noise(seed)).first
        verdict = toy_target().verify(asked(context, [candidate], sampling, Rule(rule), seed))
        logits = SCORER.score([*context, *candidate.token_ids], len(candidate) + 1)
        for i, d in enumerate(verdict.decisions):
            p = to_probs(logits[i], sampling)
            found = {c.token_id: c for c in d.weighed}
            assert len(found) == len(d.weighed) <= WEIGHED
            assert all(c.token == TOKENIZER.token_name(c.token_id) and c.p == p[c.token_id] for c in d.weighed)
            if d.status == "ignored":
                assert not found and d.overlap is None
                continue
            likely = set(np.argsort(-p)[:10][np.sort(p)[::-1][:10] > 0])
            assert {d.final_id, *likely} <= set(found)
            if d.status == "bonus":
                assert d.overlap is None and all(c.q is None for c in d.weighed)
                continue
            tested += 1
            q = candidate.q[i].dense(len(p))
            assert d.overlap == pytest.approx(np.minimum(p, q).sum(), abs=1e-12)
            assert d.draft_id in found and all(c.q == q[c.token_id] for c in d.weighed)
            assert (found[d.draft_id].p, found[d.draft_id].q) == (d.p, d.q)
            assert all(c.p or c.q for c in d.weighed)
            assert set(np.flatnonzero(q >= max(np.sort(q)[-10:][0], 1e-300))) <= set(found) or len(found) == WEIGHED
            partly += sum(c.p or 0 for c in d.weighed) < 1
    assert tested and (sampling != Sampling(1.0) or partly)


def test_a_draft_over_a_smaller_vocabulary_is_judged_against_the_whole_of_p() -> None:
    """Padding rows differ, tokens do not (vllm#5203)."""
    candidate = block_of([0], [Row(np.array([0.5, 0.5]))])
    drawn = [
        fixed_target([0.1, 0.2, 0.7]).verify(asked([0], [candidate], Sampling(1.0), Rule(), s)).token_ids[0]
        for s in range(300)
    ]
    assert 2 in drawn
