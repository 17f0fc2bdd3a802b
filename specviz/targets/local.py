"""A target in this process. It sees whole distributions, so it applies every rule without approximation."""

from __future__ import annotations

import time

import numpy as np

from specviz.core.alternatives import alternatives_of, weighed_of
from specviz.core.guarantee import Guarantee
from specviz.core.ports import Capabilities, Model, Scorer, Tokenizer
from specviz.core.rounds import Decision, Round, Verdict
from specviz.core.sampling import (
    Logits,
    Row,
    bonus,
    draw_shared,
    most_probable,
    overlap,
    promise,
    replacement,
    row_of,
    summarise,
    token_test,
)
from specviz.core.settings import Rule, Sampling


class LocalTarget:
    """Scores a block in one forward pass over K+1 positions.

    Args:
        name: as in the settings.
        model: scores the blocks.
        engine_note: see `Capabilities`.
    """

    def __init__(self, name: str, model: Model, engine_note: str = "") -> None:
        self.name, self.tokenizer = name, model.tokenizer
        self.capabilities = Capabilities(
            vocab_size=len(model.vocabulary.pieces),
            max_context=model.max_context,
            stop_ids=model.stop_ids,
            engine=model.engine,
            precision=model.precision,
            blas=model.blas,
            model_file=model.model_file,
            engine_note=engine_note,
        )
        self._scorer = model.scorer()

    @property
    def scorer(self) -> Scorer:
        """The model with its cache."""
        return self._scorer

    def guarantee(self, sampling: Sampling, rule: Rule) -> Guarantee:
        """What the rule promises. This target adds no error of its own."""
        return promise(rule, sampling)

    def verify(self, round: Round) -> Verdict:
        """One forward pass; then the rule decides position by position, until the first rejection.

        Raises:
            ValueError: more than one candidate.
        """
        if len(round.draft.candidates) > 1:
            raise ValueError(f"a local target verifies one candidate a round, not {len(round.draft.candidates)}")
        draft_ids = round.draft.first.token_ids
        began = time.perf_counter()
        logits = self._scorer.score([*round.context_ids, *draft_ids], len(draft_ids) + 1)
        scored = time.perf_counter()
        decisions, token_ids = judge_block(logits, round, self.tokenizer)
        ended = time.perf_counter()
        return Verdict(
            decisions=decisions,
            token_ids=token_ids,
            guarantee=promise(round.rule, round.sampling),
            compute_ms=(scored - began) * 1000,
            rule_ms=(ended - scored) * 1000,
        )

    def reset(self) -> None:
        """Forget the target's cache."""
        self._scorer.reset()


def judge_block(logits: Logits, round: Round, tokenizer: Tokenizer) -> tuple[tuple[Decision, ...], tuple[int, ...]]:
    """Apply the rule to a scored block (Leviathan et al. 2023, algorithm 1).

    Rows after the first rejection are not turned into probabilities, because the rule does not reach them.

    Args:
        logits: (K+1, V); row i is the target's output after the context and i draft tokens.
        round: has one candidate of K tokens, or none (K = 0).

    Returns:
        The decisions: one per draft token, and the bonus after full acceptance. The ids that the round emits.
    """
    block, rule, sampling = round.draft.first, round.rule, round.sampling
    rng, explained = round.noise.target(), round.explain == 2
    decisions: list[Decision] = []
    emitted: list[int] = []
    for position, x in enumerate(block.token_ids):
        row, q = logits[position], block.q[position]
        best = most_probable(row)
        p = row_of(row, sampling, best)
        tested = token_test(rule, p, x, q, rng)
        final = x if tested.kept else replacement(rule, p, q, tested, rng)
        summary = summarise(row, best, entropy=explained)
        likely = alternatives_of(row, summary, p, tokenizer) if explained else ()
        decisions.append(
            Decision(
                status="accepted" if tested.kept else "rejected",
                draft_id=x,
                final_id=final,
                p=tested.p,
                q=tested.q,
                acceptance=tested.weight,
                u=tested.u,
                draft_logprob_target=float(row[x]) - summary.log_normaliser,
                final_logprob=float(row[final]) - summary.log_normaliser,
                entropy=summary.entropy_bits,
                alternatives=likely,
                weighed=weighed_of((x, final), likely, block.alternatives[position], q, p.prob, tokenizer)
                if explained
                else (),
                overlap=overlap(p, q),
            )
        )
        emitted.append(final)
        if not tested.kept:
            ignored = block.token_ids[position + 1 :]
            decisions.extend(Decision(status="ignored", draft_id=i, final_id=None) for i in ignored)
            return tuple(decisions), tuple(emitted)
    extra = _bonus(logits[-1], round, rng, tokenizer)
    assert extra.final_id is not None
    return (*decisions, extra), (*emitted, extra.final_id)


def _bonus(row: Logits, round: Round, rng: np.random.Generator, tokenizer: Tokenizer) -> Decision:
    """The token after a fully accepted block, or the only token of a round without a draft."""
    best = most_probable(row)
    p = row_of(row, round.sampling, best)
    token = _own_token(p, round, rng)
    explained = round.explain == 2
    summary = summarise(row, best, entropy=explained)
    logprob = float(row[token]) - summary.log_normaliser
    likely = alternatives_of(row, summary, p, tokenizer) if explained else ()
    return Decision(
        status="bonus",
        draft_id=None,
        final_id=token,
        p=p.prob(token),
        draft_logprob_target=logprob,
        final_logprob=logprob,
        entropy=summary.entropy_bits,
        alternatives=likely,
        weighed=weighed_of((token,), likely, (), None, p.prob, tokenizer) if explained else (),
    )


def _own_token(p: Row, round: Round, rng: np.random.Generator) -> int:
    if round.stream == "shared":
        return draw_shared(p, round.rule, round.noise.shared(len(round.context_ids)))
    return bonus(p, round.rule, rng)
