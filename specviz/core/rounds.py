"""One round as values: what was drafted, what a target is asked to judge, and what it decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from specviz.core.codec import Amount, Count, Position, Share, TokenId
from specviz.core.events import Alternative, Weighed
from specviz.core.guarantee import Guarantee
from specviz.core.noise import Noise
from specviz.core.sampling import Row, Status
from specviz.core.settings import Rule, Sampling

#: How the tokens of a candidate were chosen. iid: drawn one by one, each from its own q. distinct_first: the same, but
#: the first tokens of the candidates of one draft were drawn without replacement. one_hot: chosen, not drawn.
Drawn = Literal["iid", "distinct_first", "one_hot"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One block of draft tokens, each with the q that it was drawn from.

    Attributes:
        token_ids: (K,); K may be less than asked for.
        q: (K,) rows; `token_ids[i]` was drawn from `q[i]`.
        logprobs: (K,) natural log of the draft's probability before temperature; None if the drafter has none (n-gram).
        entropies: (K,) bits, of the untruncated distribution at temperature 1; None if the drafter has none.
        alternatives: (K,) the draft's most probable tokens at each position, best first.
        times_ms: (K,) time of each token.
        drafter: name of the drafter that proposed it.
        drawn: how the tokens were chosen. `q` describes each token alone; this also says whether the candidates of one
            draft depend on each other.
    """

    token_ids: tuple[TokenId, ...]
    q: tuple[Row, ...]
    logprobs: tuple[float | None, ...]
    entropies: tuple[Amount | None, ...]
    alternatives: tuple[tuple[Alternative, ...], ...]
    times_ms: tuple[Amount, ...]
    drafter: str = ""
    drawn: Drawn = "iid"

    def __len__(self) -> int:
        return len(self.token_ids)

    def behind(self, start: int) -> Candidate:
        """The candidate without its first `start` tokens."""
        return replace(
            self,
            token_ids=self.token_ids[start:],
            q=self.q[start:],
            logprobs=self.logprobs[start:],
            entropies=self.entropies[start:],
            alternatives=self.alternatives[start:],
            times_ms=self.times_ms[start:],
        )


#: A candidate without tokens.
EMPTY = Candidate((), (), (), (), (), ())


@dataclass(frozen=True, slots=True)
class Draft:
    """What a drafter proposes for a round.

    Attributes:
        candidates: in the order drawn, each with at least one token; empty when nothing was drafted.
        note: why the drafter could not draft what it was asked for, as a sentence for the user; usually empty.
    """

    candidates: tuple[Candidate, ...] = ()
    note: str = ""

    @property
    def first(self) -> Candidate:
        """The first candidate; `EMPTY` when there is none."""
        return self.candidates[0] if self.candidates else EMPTY


NO_DRAFT = Draft()


#: How much is recorded about each token. 1: its own numbers. 2: also the most probable tokens of draft and target, for
#: whoever shows them.
Explain = Literal[1, 2]

#: Which stream the target draws from: one per round, or one per position. See `specviz.core.noise`.
Stream = Literal["target", "shared"]


@dataclass(frozen=True, slots=True)
class Round:
    """The input of one verification.

    Attributes:
        context_ids: all token ids before the draft, the prompt included.
        draft: the proposed candidates; no candidate means one plain decoding step.
        sampling, rule: of the run.
        noise: every random draw of the round.
        stream: of the target's draws. Plain decoding without a drafter draws by position, so that its text does not
            depend on the number of rounds.
        explain: how much to record; a target that gets the most probable tokens anyway may always record them.
    """

    context_ids: tuple[TokenId, ...]
    draft: Draft
    sampling: Sampling
    rule: Rule
    noise: Noise
    stream: Stream = "target"
    explain: Explain = 2

    def behind(self, token_ids: Sequence[int], rest: Candidate) -> Round:
        """The same round with `token_ids` appended to the context and `rest` as its only candidate."""
        draft = replace(self.draft, candidates=(rest,) if rest.token_ids else ())
        return replace(self, context_ids=(*self.context_ids, *token_ids), draft=draft)


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision at one position of a candidate.

    Attributes:
        status: accepted, rejected, ignored (after the first rejection: not tested by the rule) or bonus.
        draft_id: the draft token; None for the bonus.
        final_id: the emitted token; None when ignored.
        p, q: target and draft probability of the draft token after the sampling settings (of the bonus token, for
            the bonus; its q is None).
        acceptance: the probability with which the rule keeps the draft token; None for ignored and bonus.
        u: the uniform draw that decided, if the rule draws one.
        draft_logprob_target: natural log of the target's probability of the draft token, before temperature (of the
            bonus token, for the bonus).
        final_logprob: the same for `final_id`.
        entropy: bits, of the target's untruncated distribution at temperature 1.
        alternatives: the target's most probable tokens here, best first.
        weighed, overlap: see `events.VerifyResult`.
        candidate: number of the candidate that this position belongs to.
    """

    status: Status
    draft_id: TokenId | None
    final_id: TokenId | None
    p: Share | None = None
    q: Share | None = None
    acceptance: Share | None = None
    u: Share | None = None
    draft_logprob_target: float | None = None
    final_logprob: float | None = None
    entropy: Amount | None = None
    alternatives: tuple[Alternative, ...] = ()
    weighed: tuple[Weighed, ...] = ()
    overlap: Share | None = None
    candidate: Position = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one verification. Times are in ms, None when unknown.

    Attributes:
        decisions: one per draft token of each candidate, then the bonus if every token of the winner was kept.
        token_ids: the emitted ids: kept tokens and the resampled or bonus token.
        compute_ms: the target model's forward pass. network_ms, queue_ms: 0.0 in-process.
        rule_ms: computing probabilities, applying the rule, and recording its decisions.
        call_ms: the part of calls to a server that cannot be divided into network and computing.
        sent_bytes, received_bytes, billed_prompt_tokens, billed_completion_tokens, requests: None where not applicable.
        winner: number of the candidate that the emitted ids belong to.
    """

    decisions: tuple[Decision, ...]
    token_ids: tuple[TokenId, ...]
    guarantee: Guarantee
    compute_ms: Amount | None
    rule_ms: Amount | None
    network_ms: Amount | None = 0.0
    queue_ms: Amount | None = 0.0
    call_ms: Amount = 0.0
    sent_bytes: Count | None = None
    received_bytes: Count | None = None
    billed_prompt_tokens: Count | None = None
    billed_completion_tokens: Count | None = None
    requests: Count | None = None
    winner: Position = 0
