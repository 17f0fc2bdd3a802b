"""The events of a run, as frozen values with a JSON form.

`draft_token`, `verify_result`, `metrics`, `done` and `error` keep the names and fields of SpeculatoViz's protocol
and add to them. Pages, replay, benchmark and CLI read only these events. Probabilities `p`, `q` and `acceptance_prob`
are after the sampling settings; log-probabilities are natural logarithms, before the settings; entropies are in bits.
None means "unknown" and is shown as n/a, never as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from specviz.core import codec
from specviz.core.codec import Amount, Count, Index, Position, Share, TokenId
from specviz.core.errors import SpecvizError, TraceError
from specviz.core.known import sum_known
from specviz.core.names import Place
from specviz.core.packed import packed

#: From best to worst.
GuaranteeKind = Literal["EXACT", "BOUNDED", "LOSSY", "UNKNOWN"]
_GUARANTEES: dict[str, GuaranteeKind] = {kind: kind for kind in get_args(GuaranteeKind)}

#: How a completions target is verified. scoring: the server scores the draft tokens. prefixes: it takes the block's
#: prefixes in one call and generates one token after each. generating: it generates without seeing the draft.
Way = Literal["scoring", "prefixes", "generating"]

#: How plain decoding was measured. plain_rounds: in rounds of the run itself. separate_run: before the run, or in a run
#: of its own. streaming: in one streamed answer of a server. per_call: with one call per token.
BaselineKind = Literal["plain_rounds", "separate_run", "streaming", "per_call"]


class Alternative(NamedTuple):
    """One possible token at a position: id, printable form, log-probability before temperature, probability."""

    token_id: TokenId
    token: str
    logprob: float
    prob: Share


class Weighed(NamedTuple):
    """One token at a tested position, with p and q after the sampling settings; None when unknown."""

    token_id: TokenId
    token: str
    p: Share | None
    q: Share | None


@dataclass(frozen=True, slots=True)
class Guarantee:
    """How far the output distribution is the target's own.

    Attributes:
        kind: EXACT, BOUNDED (total variation per token at most `epsilon`), LOSSY or UNKNOWN.
        reason: why, in one sentence for the user.
    """

    kind: GuaranteeKind
    reason: str
    epsilon: Share | None = None

    def __str__(self) -> str:
        return f"BOUNDED({self.epsilon:.2g})" if self.kind == "BOUNDED" else self.kind

    @classmethod
    def parse(cls, text: str) -> Guarantee:
        """The inverse of `str`, without the reason. Any other text is UNKNOWN."""
        kind, _, epsilon = text.rstrip(")").partition("(")
        try:
            return cls(_GUARANTEES[kind], "", float(epsilon) if epsilon else None)
        except (KeyError, ValueError):
            return cls("UNKNOWN", "")


def badness(guarantee: Guarantee) -> tuple[int, float]:
    """Sort key; larger is worse: EXACT, BOUNDED by its epsilon, LOSSY, UNKNOWN."""
    return tuple(_GUARANTEES).index(guarantee.kind), guarantee.epsilon or 0.0


def worst(one: Guarantee, *others: Guarantee | None) -> Guarantee:
    """The worst of some guarantees, the first on a tie."""
    return max([one, *(g for g in others if g is not None)], key=badness)


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
        sums: list[Any] = [sum_known((getattr(self, f.name), getattr(more, f.name))) for f in fields(self)]
        return TimeSplit(*sums)


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins.

    Attributes:
        started_at: seconds since the epoch.
        baseline_tps: measured plain decoding; streamed, for a completions target.
        per_call_tps: measured plain decoding with one call per token, for a completions target or through a simulated
            network; None for other targets.
        baseline_kind: how `baseline_tps` was measured; None when it was not.
        place: where the target is. engine, precision, blas: the engine of an in-process target, its number format and
            its matrix library; empty when unknown.
        way: how a completions target verifies; None for other targets.
        simulated_rtt_ms: round trip of the network that was simulated in front of the target; 0 for none.
        simulated_jitter_ms: how far a single round trip could differ from that.
        versions: of the packages in `provenance.PACKAGES`, specviz and Python, by name.
    """

    type: ClassVar[str] = "run_started"
    run_id: str
    target: str
    draft: str
    settings: dict[str, Any]
    guarantee: Guarantee
    vocab_size: Count
    max_context: Count
    prompt_ids: tuple[TokenId, ...]
    prompt_text: str
    started_at: float
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
    logprob: float | None
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
    draft_logprob: float | None
    target_logprob: float | None
    final_logprob: float | None
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
        """The event for an exception; any exception other than a `SpecvizError` is reported as a bug."""
        if isinstance(exc, SpecvizError):
            return cls(type(exc).__name__, exc.message, exc.remedy)
        return cls("InternalError", f"{type(exc).__name__}: {exc}", "This is a bug in specviz: please report it.")


Event = RunStarted | DraftToken | VerifyResult | Metrics | Done | Error
_KINDS: dict[str, type[Any]] = {k.type: k for k in (RunStarted, DraftToken, VerifyResult, Metrics, Done, Error)}

#: Fields whose JSON form is not msgspec's own: bytes are hexadecimal, and the log-probability of an impossible token is
#: -inf, which JSON cannot represent as a number.
_BYTES = ("token_bytes", "final_token_bytes")
_LOGPROBS = ("logprob", "draft_logprob", "target_logprob", "final_logprob")
_IMPOSSIBLE = "-inf"


def to_json(event: Event) -> dict[str, Any]:
    """The event as JSON-ready data: its type, then its fields. `from_json` returns an equal event."""
    data: dict[str, Any] = {"type": event.type} | codec.to_json(event)
    for name in _BYTES:
        if data.get(name) is not None:
            data[name] = data[name].hex()
    for name in _LOGPROBS:
        if data.get(name) == -inf:
            data[name] = _IMPOSSIBLE
    if any(row[2] == -inf for row in data.get("top_tokens", ())):
        data["top_tokens"] = [
            (*row[:2], _IMPOSSIBLE if row[2] == -inf else row[2], row[3]) for row in data["top_tokens"]
        ]
    return data


def from_json(data: Mapping[str, Any]) -> Event:
    """The inverse of `to_json`. Unknown fields, from a newer version, are ignored.

    Raises:
        TraceError: unknown type, or a field is missing, malformed or out of range.
    """
    kind = _KINDS.get(str(data.get("type")))
    if kind is None:
        raise TraceError(f"Unknown event type {data.get('type')!r}.", "It may come from a newer specviz.")
    try:
        event: Event = codec.from_json(_with_numbers(_as_today(data)), kind)
    except (TypeError, ValueError, IndexError) as exc:
        raise TraceError(f"A {kind.type} event is malformed: {exc}.", "The recording is damaged there.") from exc
    return event


def _with_numbers(data: dict[str, Any]) -> dict[str, Any]:
    """Convert bytes and -inf back from their JSON form."""
    for name in _BYTES:
        if data.get(name) is not None:
            data[name] = bytes.fromhex(data[name])
    for name in _LOGPROBS:
        if data.get(name) == _IMPOSSIBLE:
            data[name] = -inf
    rows = data.get("top_tokens", ())
    if any(row[2] == _IMPOSSIBLE for row in rows):
        data["top_tokens"] = [[*row[:2], -inf if row[2] == _IMPOSSIBLE else row[2], *row[3:]] for row in rows]
    return data


def _as_today(data: Mapping[str, Any]) -> dict[str, Any]:
    """An event of specviz 0.1 or 0.2 with the fields that it would have today.

    These versions wrote "rows" as the way of an in-process target. They did not record the kind of a baseline; it is
    derived from the speeds: when the stream of a server could not be counted, both speeds were the same.
    """
    today = dict(data)
    if "candidates" in today:
        today.setdefault("weighed", today.pop("candidates"))
    if today["type"] == RunStarted.type and "place" not in today:
        way, plain = today.get("way", "rows"), today.get("baseline_tps")
        here = way == "rows"
        today["place"], today["way"] = ("here", None) if here else ("completions", way)
        kind: BaselineKind = (
            "separate_run" if here else "per_call" if plain == today.get("per_call_tps") else "streaming"
        )
        today["baseline_kind"] = None if plain is None else kind
    return today
