"""What every target promises."""

from collections.abc import Callable

import numpy as np
import pytest

from specviz.core.alternatives import CANDIDATES
from specviz.core.errors import IncapableError
from specviz.core.events import Way
from specviz.core.ports import Candidate, Drafter, Target
from specviz.core.sampling import Row, to_probs
from specviz.core.settings import RULES, Rule, RuleName, Sampling
from specviz.drafters.ngram import NgramDrafter
from specviz.engines.toy import ToyScorer
from specviz.targets.simulated_network import SimulatedNetwork
from tests.targets.completions.remotes import TOY, WAYS, block, remote_target
from tests.targets.completions.toyserver import ToyServer
from tests.toys import TOKENIZER, fixed_target, pruned_draft, toy_draft, toy_target

LOCAL: dict[str, Callable[[], Target]] = {
    "toy": toy_target,
    "fixed": lambda: fixed_target([0.1, 0.2, 0.7]),
    "far": lambda: SimulatedNetwork(toy_target(), 0.2, 0.1),
}


def remote(dialect: str, way: Way) -> Callable[[], Target]:
    return lambda: remote_target(ToyServer(SCORER, dialect, TOY), way)


SCORER = ToyScorer(TOY)
#: What a server draws without a seed is not repeated: batches have none, and several samples neither.
REPEATABLE = LOCAL | {f"{d}-{way}": remote(d, way) for d, way in WAYS if way == "generating"}
MAKERS = REPEATABLE | {f"{d}-{way}": remote(d, way) for d, way in WAYS if way != "generating"}


@pytest.fixture(params=MAKERS)
def target(request: pytest.FixtureRequest) -> Target:
    return MAKERS[request.param]()


@pytest.fixture(params=REPEATABLE)
def repeatable(request: pytest.FixtureRequest) -> Target:
    return REPEATABLE[request.param]()


def offers(target: Target, sampling: Sampling, rule: Rule) -> bool:
    """Not every way can do every rule; it says so before the first call."""
    try:
        target.guarantee(sampling, rule)
    except IncapableError:
        with pytest.raises(IncapableError):
            target.verify([0], [block(1)], sampling, rule, np.random.default_rng(0))
        return False
    return True


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("ids", [(), (0,), (2, 2, 1, 0)])
def test_decisions_are_kept_then_at_most_one_refused_then_ignored(
    target: Target, rule: RuleName, temperature: float, ids: tuple[int, ...]
) -> None:
    if not offers(target, Sampling(temperature), Rule(rule)):
        return
    for seed in range(20 if target.capabilities.full_rows else 6):
        proposals = [block(*ids)] if ids else []
        verdict = target.verify([0, 1], proposals, Sampling(temperature), Rule(rule), np.random.default_rng(seed))
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
                # A server tells some of it, or nothing; what it tells must be possible.
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
        rngs = map(np.random.default_rng, range(5))
        return [target.verify([0, 1], [block(2, 2)], Sampling(1.0), Rule(), rng).token_ids for rng in rngs]

    first = ask()
    target.verify([1, 1, 1], [block(0)], Sampling(1.0), Rule(), np.random.default_rng(0))
    assert ask() == first
    target.reset()
    assert ask() == first


def test_probabilistic_draws_u_once_per_tested_token_and_keeps_below_it(target: Target) -> None:
    context = TOKENIZER.encode("the")
    [proposal] = toy_draft().propose(context, 4, Sampling(1.0), np.random.default_rng(0))
    verdict = toy_target().verify(context, [proposal], Sampling(1.0), Rule(), np.random.default_rng(1))
    for d in verdict.decisions:
        if d.u is not None:
            assert d.acceptance is not None and (d.status == "accepted") == (d.u < d.acceptance)


def test_two_candidates_are_refused(target: Target) -> None:
    with pytest.raises(ValueError, match="one candidate"):
        target.verify([0], [block(1), block(2)], Sampling(), Rule(), np.random.default_rng(0))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0), Sampling(0.8, top_k=3), Sampling(1.3, top_p=0.7)])
@pytest.mark.parametrize("make_draft", [toy_draft, pruned_draft, lambda: NgramDrafter(shortest=1)])
def test_what_is_recorded_of_a_decision_is_what_it_was_decided_by(
    rule: RuleName, sampling: Sampling, make_draft: Callable[[], Drafter]
) -> None:
    """Candidates and overlap of a local target, against the whole rows."""
    context, tested, partly = TOKENIZER.encode("the draft the draft the"), 0, 0
    for seed in range(12):
        [proposal] = make_draft().propose(context, 4, sampling, np.random.default_rng(seed))
        verdict = toy_target().verify(context, [proposal], sampling, Rule(rule), np.random.default_rng(seed))
        logits = SCORER.score([*context, *proposal.token_ids], len(proposal.token_ids) + 1)
        for i, d in enumerate(verdict.decisions):
            p = to_probs(logits[i], sampling)
            found = {c.token_id: c for c in d.candidates}
            assert len(found) == len(d.candidates) <= CANDIDATES
            assert all(c.token == TOKENIZER.token_name(c.token_id) and c.p == p[c.token_id] for c in d.candidates)
            if d.status == "ignored":
                assert not found and d.overlap is None
                continue
            likely = set(np.argsort(-p)[:10][np.sort(p)[::-1][:10] > 0])
            assert {d.final_id, *likely} <= set(found)
            if d.status == "bonus":
                assert d.overlap is None and all(c.q is None for c in d.candidates)
                continue
            tested += 1
            q = proposal.q[i].dense(len(p))
            assert d.overlap == pytest.approx(np.minimum(p, q).sum(), abs=1e-12)
            assert d.draft_id in found and all(c.q == q[c.token_id] for c in d.candidates)
            assert (found[d.draft_id].p, found[d.draft_id].q) == (d.p, d.q)
            assert all(c.p or c.q for c in d.candidates)
            assert set(np.flatnonzero(q >= max(np.sort(q)[-10:][0], 1e-300))) <= set(found) or len(found) == CANDIDATES
            partly += sum(c.p or 0 for c in d.candidates) < 1
    assert tested and (sampling != Sampling(1.0) or partly)


def test_a_draft_over_a_smaller_vocabulary_is_judged_against_the_whole_of_p() -> None:
    """Padding rows differ, tokens do not (vllm#5203)."""
    q = Row(np.array([0.5, 0.5]))
    proposal = Candidate((0,), (q,), (None,), (None,), ((),), (0.0,))
    drawn = [
        fixed_target([0.1, 0.2, 0.7])
        .verify([0], [proposal], Sampling(1.0), Rule(), np.random.default_rng(s))
        .token_ids[0]
        for s in range(300)
    ]
    assert 2 in drawn
