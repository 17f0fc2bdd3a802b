"""A target in this process: it sees whole distributions, so every rule is as exact as the rule can be."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from specviz.core.alternatives import alternatives_of, candidates_of
from specviz.core.events import Guarantee
from specviz.core.ports import NO_PROPOSAL, Candidate, Capabilities, Decision, Scorer, Tokenizer, Verdict
from specviz.core.sampling import Logits, Row, bonus, judge_of, overlap, promise, summarise, to_probs
from specviz.core.settings import Rule, Sampling


class LocalTarget:
    """Scores a block in one forward pass over K+1 positions.

    Args:
        name: as the catalog knows it.
        scorer: the model with its cache.
        tokenizer: the target's own.
        capabilities: its limits.
    """

    def __init__(self, name: str, scorer: Scorer, tokenizer: Tokenizer, capabilities: Capabilities) -> None:
        self.name, self.tokenizer, self.capabilities = name, tokenizer, capabilities
        self._scorer = scorer

    @property
    def scorer(self) -> Scorer:
        """The model with its cache."""
        return self._scorer

    def guarantee(self, sampling: Sampling, rule: Rule) -> Guarantee:
        """What the rule promises: nothing is lost on the way to it."""
        return promise(rule, sampling)

    def verify(
        self,
        context_ids: Sequence[int],
        proposals: Sequence[Candidate],
        sampling: Sampling,
        rule: Rule,
        rng: np.random.Generator,
    ) -> Verdict:
        """One forward pass, then the rule, position by position until the first rejection.

        Raises:
            ValueError: more than one candidate.
        """
        if len(proposals) > 1:
            raise ValueError(f"a local target judges one candidate a round, not {len(proposals)}")
        proposal = proposals[0] if proposals else NO_PROPOSAL
        began = time.perf_counter()
        logits = self._scorer.score([*context_ids, *proposal.token_ids], len(proposal.token_ids) + 1)
        scored = time.perf_counter()
        decisions, token_ids = judge_block(logits, proposal, sampling, rule, rng, self.tokenizer)
        ended = time.perf_counter()
        return Verdict(
            decisions=decisions,
            token_ids=token_ids,
            guarantee=promise(rule, sampling),
            compute_ms=(scored - began) * 1000,
            rule_ms=(ended - scored) * 1000,
        )

    def reset(self) -> None:
        """Forget the target's cache."""
        self._scorer.reset()


def judge_block(
    logits: Logits,
    proposal: Candidate,
    sampling: Sampling,
    rule: Rule,
    rng: np.random.Generator,
    tokenizer: Tokenizer,
) -> tuple[tuple[Decision, ...], tuple[int, ...]]:
    """Apply a rule to a scored block (Leviathan et al. 2023, algorithm 1).

    Rows behind the first rejection are never turned into probabilities: the rule does not reach them.

    Args:
        logits: (K+1, V); row i is the target's view after the context and i draft tokens.
        proposal: K draft tokens with their q.

    Returns:
        One decision per draft token, and the bonus after full acceptance; the ids that the round emits.
    """
    judge = judge_of(rule)
    decisions: list[Decision] = []
    emitted: list[int] = []
    for position, (x, q) in enumerate(zip(proposal.token_ids, proposal.q, strict=True)):
        row = logits[position]
        p = to_probs(row, sampling)
        verdict = judge(p, x, q, rng)
        summary = summarise(row)
        best, likely = alternatives_of(row, summary, Row(p), tokenizer), proposal.alternatives[position]
        decisions.append(
            Decision(
                status="accepted" if verdict.accepted else "rejected",
                draft_id=x,
                final_id=verdict.final_id,
                p=float(p[x]),
                q=q.prob(x),
                acceptance=verdict.acceptance,
                u=verdict.u,
                draft_logprob_target=float(row[x]) - summary.log_normaliser,
                final_logprob=float(row[verdict.final_id]) - summary.log_normaliser,
                entropy=summary.entropy_bits,
                alternatives=best,
                candidates=candidates_of((x, verdict.final_id), best, likely, q, Row(p).prob, tokenizer),
                overlap=overlap(p, q),
            )
        )
        emitted.append(verdict.final_id)
        if not verdict.accepted:
            ignored = proposal.token_ids[position + 1 :]
            decisions.extend(Decision(status="ignored", draft_id=i, final_id=None) for i in ignored)
            return tuple(decisions), tuple(emitted)
    row = logits[-1]
    p = to_probs(row, sampling)
    extra = bonus(p, rule, rng)
    summary = summarise(row)
    logprob = float(row[extra]) - summary.log_normaliser
    best = alternatives_of(row, summary, Row(p), tokenizer)
    decisions.append(
        Decision(
            status="bonus",
            draft_id=None,
            final_id=extra,
            p=float(p[extra]),
            draft_logprob_target=logprob,
            final_logprob=logprob,
            entropy=summary.entropy_bits,
            alternatives=best,
            candidates=candidates_of((extra,), best, (), None, Row(p).prob, tokenizer),
        )
    )
    return tuple(decisions), (*emitted, extra)
