"""What happens in a run, as frozen values with a JSON form.

`draft_token`, `verify_result`, `metrics`, `done` and `error` keep the names and fields of SpeculatoViz's protocol
and add to them. Pages, replay, benchmark and CLI consume these and nothing else. Probabilities `p`, `q` and
`acceptance_prob` are after the sampling settings; log-probabilities are natural and before them; entropies are in bits;
None means "not known" and is shown as n/a, never as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from specviz.core.errors import SpecvizError, TraceError
from specviz.core.packed import Packed, packed

#: From the best to the worst.
GuaranteeKind = Literal["EXACT", "BOUNDED", "LOSSY", "UNKNOWN"]
_GUARANTEES: dict[str, GuaranteeKind] = {kind: kind for kind in get_args(GuaranteeKind)}

#: How a round is verified. rows: whole distributions, in one forward pass. scoring: a server scores the given tokens.
#: prefixes: it takes the block's prefixes in one call and draws a token behind each. generating: it writes on its own.
Way = Literal["rows", "scoring", "prefixes", "generating"]


class Alternative(NamedTuple):
    """One token that could have stood at a position: id, printable form, untempered log-probability, probability."""

    token_id: int
    token: str
    logprob: float
    prob: float


class Weighed(NamedTuple):
    """One token at a tested position: what each side gave it after the sampling settings; None where not known."""

    token_id: int
    token: str
    p: float | None
    q: float | None


@dataclass(frozen=True, slots=True)
class Guarantee:
    """How far the output is the target's own.

    Attributes:
        kind: EXACT, BOUNDED (total variation per token at most `epsilon`), LOSSY or UNKNOWN.
        reason: why, in a sentence for the person who reads the result.
    """

    kind: GuaranteeKind
    reason: str
    epsilon: float | None = None

    def __str__(self) -> str:
        return f"BOUNDED({self.epsilon:.2g})" if self.kind == "BOUNDED" else self.kind

    @classmethod
    def parse(cls, text: str) -> Guarantee:
        """The guarantee that `str` made this text from, without its reason. Any other text is UNKNOWN."""
        kind, _, epsilon = text.rstrip(")").partition("(")
        try:
            return cls(_GUARANTEES[kind], "", float(epsilon) if epsilon else None)
        except (KeyError, ValueError):
            return cls("UNKNOWN", "")


def badness(guarantee: Guarantee) -> tuple[int, float]:
    """Larger is worse: EXACT, BOUNDED by its epsilon, LOSSY, UNKNOWN."""
    return tuple(_GUARANTEES).index(guarantee.kind), guarantee.epsilon or 0.0


def worst(one: Guarantee, *others: Guarantee | None) -> Guarantee:
    """The worst of some guarantees; of equals the first."""
    return max([one, *(g for g in others if g is not None)], key=badness)


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Where wall time went, in ms. `other_ms` is the rest, so the parts add up to `wall_ms`.

    Drawing, recording and whatever the consumer does between events is outside all of them. A part that cannot be
    known is None: most servers do not say what of a call was network and what was computing, and such a call is in
    `call_ms` as a whole.

    Attributes:
        queue_ms: waiting for a server that is busy: in its queue, and in front of a repeated call.
        call_ms: what is left of calls to a server, undivided; 0 in-process.
    """

    wall_ms: float = 0.0
    draft_ms: float = 0.0
    network_ms: float | None = 0.0
    queue_ms: float | None = 0.0
    target_ms: float | None = 0.0
    rule_ms: float = 0.0
    call_ms: float = 0.0

    @property
    def verify_ms(self) -> float:
        """Everything that the target was waited for."""
        return (self.network_ms or 0.0) + (self.queue_ms or 0.0) + (self.target_ms or 0.0) + self.call_ms

    @property
    def other_ms(self) -> float:
        """Loop, bookkeeping and waiting that none of the named parts covers."""
        return self.wall_ms - (self.draft_ms + self.verify_ms + self.rule_ms)

    def __add__(self, more: TimeSplit) -> TimeSplit:
        return TimeSplit(*(_sum(getattr(self, f.name), getattr(more, f.name)) for f in fields(self)))


def _sum(one: float | None, other: float | None) -> Any:
    """What is known of both; None where neither is."""
    return None if one is None and other is None else (one or 0.0) + (other or 0.0)


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins.

    Attributes:
        started_at: seconds since the epoch.
        baseline_tps: measured plain decoding; of a remote target, streamed.
        per_call_tps: plain decoding with one call per token, measured, by a remote target or through a simulated
            network; None where there is neither.
        way: how rounds are verified.
        simulated_rtt_ms: round trip of the network that was simulated in front of the target; 0 for none.
        simulated_jitter_ms: how far a single one could be from that.
    """

    type: ClassVar[str] = "run_started"
    run_id: str
    target: str
    draft: str
    settings: dict[str, Any]
    guarantee: Guarantee
    full_rows: bool
    vocab_size: int
    max_context: int
    prompt_ids: tuple[int, ...]
    prompt_text: str
    started_at: float
    baseline_tps: float | None = None
    per_call_tps: float | None = None
    way: Way = "rows"
    simulated_rtt_ms: float = 0.0
    simulated_jitter_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class DraftToken:
    """The draft proposes one token. `position` counts within the block, `index` within the output, both from 0."""

    type: ClassVar[str] = "draft_token"
    round: int
    position: int
    index: int
    token: str
    token_id: int
    token_bytes: bytes
    logprob: float | None
    entropy: float | None
    top_tokens: Sequence[Alternative]
    draft_time_ms: float

    def __post_init__(self) -> None:
        """Hold the rows closely."""
        object.__setattr__(self, "top_tokens", packed(Alternative, self.top_tokens))


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What became of one position of a round.

    Attributes:
        status: accepted; rejected (`final_token` was drawn in place of `draft_token`); ignored (never tested: behind
            a rejection or behind the end of the output); bonus.
        draft_token, draft_token_id: None for the bonus. final_token...: None when ignored.
        draft_logprob, target_logprob: of the draft token (of the bonus token, for the bonus), untempered.
        final_logprob: target's, of the final token.
        acceptance_prob: probability with which the draft token was to be kept.
        u: the uniform draw that decided, where the rule draws one.
        candidates: the draft token, the final token and both sides' most probable ones, at most 20, as far as p or q
            gives them anything; without q for the bonus, none where the rule never got.
        overlap: Σ min(p, q) over the whole vocabulary; None where p is not known as far as that takes.
    """

    type: ClassVar[str] = "verify_result"
    round: int
    position: int
    index: int
    status: Literal["accepted", "rejected", "ignored", "bonus"]
    draft_token: str | None
    draft_token_id: int | None
    final_token: str | None
    final_token_id: int | None
    final_token_bytes: bytes | None
    draft_logprob: float | None
    target_logprob: float | None
    final_logprob: float | None
    acceptance_prob: float | None
    p: float | None
    q: float | None
    u: float | None
    entropy: float | None
    top_tokens: Sequence[Alternative]
    verify_latency_ms: float
    candidates: Sequence[Weighed] = ()
    overlap: float | None = None

    def __post_init__(self) -> None:
        """Hold the rows closely."""
        object.__setattr__(self, "top_tokens", packed(Alternative, self.top_tokens))
        object.__setattr__(self, "candidates", packed(Weighed, self.candidates))


@dataclass(frozen=True, slots=True)
class Metrics:
    """Numbers after a round. Rates are None until something was tested.

    Attributes:
        acceptance_rate: accepted / tested over the last 50 rounds; overall_acceptance_rate: over all.
        accepted_per_round, tokens_per_round: means over all rounds, without and with the resampled or bonus token.
        effective_tps: emitted tokens per second of the run's own time, without the first round (it holds the prefill);
            baseline_tps: plain decoding, measured and counted the same way.
        speedup: effective_tps / baseline_tps.
        avg_draft_latency_ms, avg_verify_latency_ms: per round, over the last 50.
        split: of this round; total: of all rounds so far.
        drafted, tested, accepted, emitted: of this round.
        note: what the drafter has to say about this round, as that its context is full; mostly empty.
        requests: calls to the server that this round took; billed_prompt_tokens, billed_completion_tokens: what it
            counted for them, and billed_tokens both together. None for an in-process target.
    """

    type: ClassVar[str] = "metrics"
    round: int
    acceptance_rate: float | None
    overall_acceptance_rate: float | None
    accepted_per_round: float
    tokens_per_round: float
    effective_tps: float | None
    baseline_tps: float | None
    speedup: float | None
    avg_draft_latency_ms: float
    avg_verify_latency_ms: float
    split: TimeSplit
    total: TimeSplit
    drafted: int
    tested: int
    accepted: int
    emitted: int
    guarantee: Guarantee
    note: str = ""
    sent_bytes: int | None = None
    received_bytes: int | None = None
    billed_tokens: int | None = None
    requests: int | None = None
    billed_prompt_tokens: int | None = None
    billed_completion_tokens: int | None = None


FinishReason = Literal["stop_token", "stop_string", "max_tokens", "context_full", "stopped"]


@dataclass(frozen=True, slots=True)
class Done:
    """A run has ended. `generated_text` is the text of `token_ids`, and both end at the same token."""

    type: ClassVar[str] = "done"
    total_tokens: int
    total_accepted: int
    total_drafted: int
    total_tested: int
    total_rounds: int
    generated_text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    total: TimeSplit
    tokens_per_second: float | None
    baseline_tps: float | None
    speedup: float | None
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
        """What to tell a person of an exception; one that nobody raised on purpose is a bug, and is called so."""
        if isinstance(exc, SpecvizError):
            return cls(type(exc).__name__, exc.message, exc.remedy)
        return cls("InternalError", f"{type(exc).__name__}: {exc}", "This is a bug in specviz: please report it.")


Event = RunStarted | DraftToken | VerifyResult | Metrics | Done | Error
_KINDS: dict[str, type[Any]] = {k.type: k for k in (RunStarted, DraftToken, VerifyResult, Metrics, Done, Error)}


def _alternative(data: Any) -> Alternative:
    token_id, token, logprob, prob = data
    share = _share(prob)
    if share is None:
        raise TypeError(f"{data!r} has no probability")
    return Alternative(*_token(token_id, token), float(logprob), share)


def _candidate(data: Any) -> Weighed:
    token_id, token, p, q = data
    return Weighed(*_token(token_id, token), _share(p), _share(q))


def _token(token_id: Any, name: Any) -> tuple[int, str]:
    if isinstance(token_id, bool) or not isinstance(token_id, int) or not isinstance(name, str):
        raise TypeError(f"{token_id!r}, {name!r} is no token")
    return token_id, name


def _share(value: Any) -> float | None:
    """A probability, which a bar is drawn of: nothing beyond 1, and no nan."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1 + 1e-6:
        raise TypeError(f"{value!r} is no probability")
    return float(value)


# Fields whose Python value is richer than their JSON form.
_FROM_JSON: dict[str, Any] = {
    "guarantee": lambda v: Guarantee(**v),
    "split": lambda v: TimeSplit(**v),
    "total": lambda v: TimeSplit(**v),
    "top_tokens": lambda v: tuple(map(_alternative, v)),
    "candidates": lambda v: tuple(map(_candidate, v)),
    "overlap": _share,
    "p": _share,
    "q": _share,
    "u": _share,
    "acceptance_prob": _share,
    "token_bytes": bytes.fromhex,
    "final_token_bytes": bytes.fromhex,
    "prompt_ids": tuple,
    "token_ids": tuple,
    # A log-probability of an impossible token is -inf, which JSON has no number for.
    "logprob": float,
    "draft_logprob": float,
    "target_logprob": float,
    "final_logprob": float,
}


def to_json(event: Event) -> dict[str, Any]:
    """The event as JSON-ready data: its type, then its fields. `from_json` gives back an equal event."""
    return {"type": event.type} | {f.name: _plain(getattr(event, f.name)) for f in fields(event)}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Guarantee | TimeSplit):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple | list | Packed):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value


def from_json(data: Mapping[str, Any]) -> Event:
    """The event that `to_json` made this from. Unknown fields, from a newer version, are left out.

    Raises:
        TraceError: unknown type, or a field is missing or malformed.
    """
    kind = _KINDS.get(str(data.get("type")))
    if kind is None:
        raise TraceError(f"Unknown event type {data.get('type')!r}.", "It may come from a newer specviz.")
    try:
        values = {
            f.name: _FROM_JSON[f.name](data[f.name])
            if f.name in _FROM_JSON and data[f.name] is not None
            else data[f.name]
            for f in fields(kind)
            if f.name in data
        }
        event: Event = kind(**values)
        _check_types(event)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as exc:
        raise TraceError(f"A {kind.type} event is malformed: {exc}.", "The recording is damaged there.") from exc
    return event


_SIMPLE: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "float": (int, float),
    "str": str,
    "bool": bool,
    "bytes": bytes,
    "None": type(None),
    "tuple[int, ...]": tuple,
    "Sequence[Candidate]": (tuple, Packed),
    "dict[str, Any]": dict,
    "TimeSplit": TimeSplit,
    "Guarantee": Guarantee,
}


def _check_types(value: Any) -> None:
    """Refuse a field whose JSON was of another type, before an innocent reader divides by it.

    Raises:
        TypeError: naming the field.
    """
    for f in fields(value):
        wanted = [_SIMPLE[name] for name in str(f.type).split(" | ") if name in _SIMPLE]
        held = getattr(value, f.name)
        if wanted and not any(isinstance(held, w) for w in wanted):
            raise TypeError(f"{f.name} is {held!r}")
        if isinstance(held, TimeSplit | Guarantee):
            _check_types(held)
