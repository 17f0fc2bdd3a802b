"""The events of a run, as frozen values. Their JSON form is in `event_json`.

`draft_token`, `verify_result`, `metrics`, `done` and `error` keep the names and fields of SpeculatoViz's protocol
and add to them. Pages, replay, benchmark and CLI read only these events. Probabilities `p`, `q` and `acceptance_prob`
are after the sampling settings; log-probabilities are natural logarithms, before the settings; entropies are in bits.
None means "unknown" and is shown as n/a, never as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, NamedTuple

from msgspec import Meta

from specviz.core.codec import Amount, Count, Index, LogProb, Position, Share, TokenId
from specviz.core.errors import SpecvizError, of_system
from specviz.core.guarantee import Guarantee
from specviz.core.known import sum_known
from specviz.core.names import Place
from specviz.core.packed import packed

#: How a completions target is verified. scoring: the server scores the draft tokens. prefixes: it takes the block's
#: prefixes in one call and generates one token after each. generating: it generates without seeing the draft.
Way = Literal["scoring", "prefixes", "generating"]

#: How plain decoding was measured. plain_rounds: in rounds of the run itself. separate_run: before the run, or in a run
#: of its own. streaming: in one streamed answer of a server. per_call: with one call per token.
BaselineKind = Literal["plain_rounds", "separate_run", "streaming", "per_call"]

#: The value of a setting in a recording, which may be that of another version.
Setting = str | bool | Annotated[int, Meta(ge=0, le=2**63 - 1)] | Amount | list[str] | None


class Alternative(NamedTuple):
    """One possible token at a position: id, printable form, log-probability before temperature, probability."""

    token_id: TokenId
    token: str
    logprob: LogProb
    prob: Share


class Weighed(NamedTuple):
    """One token at a tested position, with p and q after the sampling settings; None when unknown."""

    token_id: TokenId
    token: str
    p: Share | None
    q: Share | None


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Wall time by part, in ms. `other_ms` is the rest, so the parts add up to `wall_ms`.

    Drawing, recording and everything else that the consumer does between events is not included. An unknown part is
    None: most servers do not report how much of a call was network and how much was computing; `call_ms` then holds the
    whole call.

    Attributes:
        queue_ms: waiting for a busy server: in its queue, and before a retry.
        call_ms: the part of calls to a server that cannot be divided; 0 in-process.
    """

    wall_ms: Amount = 0.0
    draft_ms: Amount = 0.0
    network_ms: Amount | None = 0.0
    queue_ms: Amount | None = 0.0
    target_ms: Amount | None = 0.0
    rule_ms: Amount = 0.0
    call_ms: Amount = 0.0

    @property
    def verify_ms(self) -> float:
        """Time spent waiting for the target."""
        return (self.network_ms or 0.0) + (self.queue_ms or 0.0) + (self.target_ms or 0.0) + self.call_ms

    @property
    def other_ms(self) -> float:
        """The rest: loop, bookkeeping and waiting that no named part includes."""
        return self.wall_ms - (self.draft_ms + self.verify_ms + self.rule_ms)

    def __add__(self, more: TimeSplit) -> TimeSplit:
        return TimeSplit(
            self.wall_ms + more.wall_ms,
            self.draft_ms + more.draft_ms,
            sum_known((self.network_ms, more.network_ms)),
            sum_known((self.queue_ms, more.queue_ms)),
            sum_known((self.target_ms, more.target_ms)),
            self.rule_ms + more.rule_ms,
            self.call_ms + more.call_ms,
        )


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins.

    Attributes:
        started_at: seconds since the epoch.
        baseline_tps: measured plain decoding; streamed, for a completions target.
        per_call_tps: measured plain decoding with one call per token, for a completions target or through a simulated
            network; None for other targets.
        baseline_kind: how `baseline_tps` was measured; None when it was not.
        baseline_age_s: how many seconds before the run that was; None when it was not, or is not recorded.
        place: where the target is. engine, precision, blas: the engine of an in-process target, its number format and
            its matrix library; empty when unknown.
        model_file: name of the file with the target's weights; empty when unknown.
        engine_note: why the engine is not the usual one, as a sentence; empty when it is.
        draft_engine: what runs the draft model; empty for drafts without a model, and when it is not recorded.
        way: how a completions target is to verify; None for other targets. See `Metrics.way` for how it did.
        simulated_rtt_ms: round trip of the network that was simulated in front of the target; 0 for none.
        simulated_jitter_ms: how far a single round trip could differ from that.
        versions: of the packages in `provenance.PACKAGES`, specviz and Python, by name.
    """

    type: ClassVar[str] = "run_started"
    run_id: str
    target: str
    draft: str
    settings: dict[str, Setting]
    guarantee: Guarantee
    vocab_size: Count
    max_context: Count
    prompt_ids: tuple[TokenId, ...]
    prompt_text: str
    started_at: Amount
    baseline_tps: Amount | None = None
    per_call_tps: Amount | None = None
    baseline_kind: BaselineKind | None = None
    place: Place = "here"
    engine: str = ""
    precision: str = ""
    blas: str = ""
    way: Way | None = None
    simulated_rtt_ms: Amount = 0.0
    simulated_jitter_ms: Amount = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    baseline_age_s: Amount | None = None
    model_file: str = ""
    engine_note: str = ""
    draft_engine: str = ""


@dataclass(frozen=True, slots=True)
class DraftToken:
    """The draft proposes one token.

    `position` counts within the block, `index` within the output, `candidate` within the round, all from 0.
    """

    type: ClassVar[str] = "draft_token"
    round: Index
    position: Position
    index: Index
    token: str
    token_id: TokenId
    token_bytes: bytes
    logprob: LogProb | None
    entropy: Amount | None
    top_tokens: Sequence[Alternative]
    draft_time_ms: Amount
    candidate: Position = 0

    def __post_init__(self) -> None:
        """Keep the rows in little memory."""
        object.__setattr__(self, "top_tokens", packed(Alternative, self.top_tokens))


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The result at one position of a round.

    Attributes:
        status: accepted; rejected (`final_token` was drawn in place of `draft_token`); ignored (not tested: after a
            rejection or after the end of the output); bonus.
        draft_token, draft_token_id: None for the bonus. final_token...: None when ignored.
        draft_logprob, target_logprob: of the draft token (of the bonus token, for the bonus), before temperature.
        final_logprob: of the final token, by the target.
        acceptance_prob: probability with which the rule keeps the draft token.
        u: the uniform draw that decided, if the rule draws one.
        weighed: the draft token, the final token and the most probable tokens of both models, at most 20, without
            those whose p and q are 0. q is None for the bonus; empty at positions that the rule did not reach.
            Recordings of specviz 0.2 and earlier call this field `candidates`.
        overlap: Σ min(p, q) over the whole vocabulary; None when p is not known well enough.
        candidate: number of the candidate that this position belongs to.
    """

    type: ClassVar[str] = "verify_result"
    round: Index
    position: Position
    index: Index
    status: Literal["accepted", "rejected", "ignored", "bonus"]
    draft_token: str | None
    draft_token_id: TokenId | None
    final_token: str | None
    final_token_id: TokenId | None
    final_token_bytes: bytes | None
    draft_logprob: LogProb | None
    target_logprob: LogProb | None
    final_logprob: LogProb | None
    acceptance_prob: Share | None
    p: Share | None
    q: Share | None
    u: Share | None
    entropy: Amount | None
    top_tokens: Sequence[Alternative]
    verify_latency_ms: Amount
    weighed: Sequence[Weighed] = ()
    overlap: Share | None = None
    candidate: Position = 0

    def __post_init__(self) -> None:
        """Keep the rows in little memory."""
        object.__setattr__(self, "top_tokens", packed(Alternative, self.top_tokens))
        object.__setattr__(self, "weighed", packed(Weighed, self.weighed))


@dataclass(frozen=True, slots=True)
class Metrics:
    """Numbers after a round. Rates are None until something was tested.

    Attributes:
        acceptance_rate: accepted / tested over the last 50 rounds; overall_acceptance_rate: over all.
        accepted_per_round, tokens_per_round: means over all rounds, without and with the resampled or bonus token.
        effective_tps: emitted tokens per second of the run's own time, without the first round, which includes the
            prefill. baseline_tps: plain decoding, measured and counted the same way.
        speedup: effective_tps / baseline_tps.
        avg_draft_latency_ms, avg_verify_latency_ms: per round, over the last 50.
        split: of this round; total: of all rounds so far.
        k: number of draft tokens asked for in this round; None in recordings that lack it.
        drafted, tested, accepted, emitted: of this round.
        note: a message of the drafter about this round, such as that its context is full; usually empty.
        requests: calls to the server in this round; billed_prompt_tokens, billed_completion_tokens: what the server
            counted for them; billed_tokens: their sum. None for an in-process target.
        way: how a completions target verified this round: it changes where the server turns out to lack an ability.
            None for other targets, and in recordings of specviz 0.2 and earlier.
    """

    type: ClassVar[str] = "metrics"
    round: Index
    acceptance_rate: Share | None
    overall_acceptance_rate: Share | None
    accepted_per_round: Amount
    tokens_per_round: Amount
    effective_tps: Amount | None
    baseline_tps: Amount | None
    speedup: Amount | None
    avg_draft_latency_ms: Amount
    avg_verify_latency_ms: Amount
    split: TimeSplit
    total: TimeSplit
    drafted: Count
    tested: Count
    accepted: Count
    emitted: Count
    guarantee: Guarantee
    note: str = ""
    sent_bytes: Count | None = None
    received_bytes: Count | None = None
    billed_tokens: Count | None = None
    requests: Count | None = None
    billed_prompt_tokens: Count | None = None
    billed_completion_tokens: Count | None = None
    k: Count | None = None
    way: Way | None = None


FinishReason = Literal["stop_token", "stop_string", "max_tokens", "context_full", "stopped"]


@dataclass(frozen=True, slots=True)
class Done:
    """A run has ended. `generated_text` is the text of `token_ids`, and both end at the same token."""

    type: ClassVar[str] = "done"
    total_tokens: Count
    total_accepted: Count
    total_drafted: Count
    total_tested: Count
    total_rounds: Count
    generated_text: str
    token_ids: tuple[TokenId, ...]
    finish_reason: FinishReason
    total: TimeSplit
    tokens_per_second: Amount | None
    baseline_tps: Amount | None
    speedup: Amount | None
    guarantee: Guarantee
    stop_string: str | None = None


@dataclass(frozen=True, slots=True)
class Error:
    """A run has failed; what it had so far stays valid."""

    type: ClassVar[str] = "error"
    kind: str
    message: str
    remedy: str = ""

    @classmethod
    def of(cls, exc: Exception) -> Error:
        """The event for an exception; one that is neither a `SpecvizError` nor the system's is reported as a bug."""
        if isinstance(exc, OSError):
            exc = of_system(exc)
        if isinstance(exc, SpecvizError):
            return cls(type(exc).__name__, exc.message, exc.remedy)
        return cls("InternalError", f"{type(exc).__name__}: {exc}", "This is a bug in specviz: please report it.")


Event = RunStarted | DraftToken | VerifyResult | Metrics | Done | Error
