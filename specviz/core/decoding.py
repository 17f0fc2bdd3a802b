"""The loop: propose, verify, keep, repeat.

Speculative decoding as in Leviathan et al. 2023 (arXiv:2211.17192), algorithm 1, one candidate per round. Both
functions are generators of events. The consumer sets the pace, and the time that it takes is not measured.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from specviz.core.errors import ScoresError, SpecvizError, StoppedError
from specviz.core.events import (
    BaselineKind,
    Done,
    DraftToken,
    Error,
    Event,
    FinishReason,
    RunStarted,
    TimeSplit,
    VerifyResult,
)
from specviz.core.guarantee import NOTHING
from specviz.core.names import NONE
from specviz.core.noise import Noise
from specviz.core.plain_output import Difference, PlainOutput
from specviz.core.ports import Drafter, Target, Tokenizer
from specviz.core.prompt import check_prompt
from specviz.core.provenance import versions
from specviz.core.rounds import NO_DRAFT, Candidate, Decision, Draft, Explain, Round, Verdict
from specviz.core.settings import Rule, Sampling, Settings
from specviz.core.tally import Tally


@dataclass(frozen=True, slots=True)
class PlainSpeeds:
    """Measured plain decoding, in tokens per second: see `specviz.core.events.RunStarted`.

    Attributes:
        age_s: how long before the run it was measured. output: what it wrote, to compare the run's output with.
    """

    baseline_tps: float | None = None
    per_call_tps: float | None = None
    kind: BaselineKind | None = None
    age_s: float | None = None
    output: PlainOutput | None = None


def speculative(
    drafter: Drafter,
    target: Target,
    prompt_ids: Sequence[int],
    settings: Settings,
    *,
    seed: int | None = None,
    prompt_text: str = "",
    plain: PlainSpeeds = PlainSpeeds(),
    explain: Explain = 2,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Event]:
    """Decode with a draft.

    Args:
        drafter, target: share one vocabulary.
        prompt_ids: the whole prompt, template applied.
        settings: k, sampling, rule, budget, stop strings.
        seed: of every draw of drafter and target, so that equal seeds give equal runs; None for the settings' seed.
        prompt_text: the text that `prompt_ids` encode, for the recording.
        plain: measured plain decoding, to compare with.
        explain: how much is recorded about each token.
        cancelled: called once per round; True ends the run with finish_reason "stopped".
        clock: current time in seconds.

    Yields:
        run_started; per round one draft_token per token, one verify_result per position, metrics; at the end done or
        error.

    Raises:
        PromptError: before the first event; nothing can be decoded from the prompt.
    """
    return _Loop(drafter, target, prompt_ids, settings, seed, prompt_text, plain, explain, cancelled, clock).events()


def autoregressive(
    target: Target,
    prompt_ids: Sequence[int],
    settings: Settings,
    *,
    seed: int | None = None,
    prompt_text: str = "",
    explain: Explain = 2,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Event]:
    """Plain decoding by the same target, the baseline: one token per round, the same events."""
    return _Loop(
        None, target, prompt_ids, settings, seed, prompt_text, PlainSpeeds(), explain, cancelled, clock
    ).events()


class _Watch:
    """A stop watch for the run's own time: paused while the consumer handles an event."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._spent, self._since = clock, 0.0, clock()

    def paused(self, events: Sequence[Event]) -> Iterator[Event]:
        """Yield events; the time until the consumer asks for the next one is not counted."""
        self._spent += self._clock() - self._since
        yield from events
        self._since = self._clock()

    def lap_ms(self) -> float:
        """Milliseconds since the last lap, without pauses; starts the next lap."""
        now = self._clock()
        lap, self._spent, self._since = self._spent + now - self._since, 0.0, now
        return lap * 1000


@dataclass(slots=True)
class _Loop:
    """One run. The fields with defaults change from round to round."""

    drafter: Drafter | None
    target: Target
    prompt_ids: Sequence[int]
    settings: Settings
    seed: int | None
    prompt_text: str
    plain: PlainSpeeds
    explain: Explain
    cancelled: Callable[[], bool]
    clock: Callable[[], float]
    context: list[int] = field(default_factory=list)
    output: list[int] = field(default_factory=list)
    finish: FinishReason | None = None
    stop_string: str | None = None
    difference: Difference | None = None
    sampling: Sampling = field(init=False)
    rule: Rule = field(init=False)

    def __post_init__(self) -> None:
        self.sampling, self.rule = self.settings.sampling, self.settings.acceptance_rule

    def events(self) -> Iterator[Event]:
        target, settings = self.target, self.settings
        check_prompt(self.prompt_ids, target.capabilities)
        self.context = list(self.prompt_ids)
        tally = Tally(self.plain.baseline_tps)
        guarantee = target.guarantee(self.sampling, self.rule)
        own = self.plain.output if guarantee.kind == "EXACT" and settings.temperature == 0 else None
        if own is not None and not own.follows(self.prompt_ids):
            own = None
        watch = _Watch(self.clock)
        yield from watch.paused([self._started()])
        watch.lap_ms()
        try:
            while self.finish is None:
                if self.cancelled():
                    self.finish = "stopped"
                    break
                number, base, asked = tally.rounds, len(self.output), self._k()
                began = self.clock()
                draft = self._propose(asked, number)
                draft_ms = (self.clock() - began) * 1000 if self.drafter else 0.0
                yield from watch.paused(_draft_events(draft.first, number, base, target.tokenizer))

                began = self.clock()
                try:
                    # A difference from plain decoding is reported with what else was probable there.
                    verdict = target.verify(self._round(draft, number, 2 if own else self.explain))
                except StoppedError:
                    self.finish = "stopped"
                    break
                except ScoresError as exc:
                    raise ScoresError(exc.problem, f"The target {target.name}") from exc
                verify_ms = (self.clock() - began) * 1000
                decisions, kept = self._take(verdict)
                statuses = [d.status for d in decisions if d is not None]
                if own is not None:
                    own = self._compare(own, decisions, base)
                guarantee = self.difference.lowered(verdict.guarantee) if self.difference else verdict.guarantee
                verified = _verify_events(decisions, draft.first, number, base, verify_ms, target.tokenizer)
                metrics = tally.add(
                    k=asked,
                    drafted=len(draft.first),
                    tested=statuses.count("accepted") + statuses.count("rejected"),
                    accepted=statuses.count("accepted"),
                    emitted=kept,
                    split=_split(watch.lap_ms(), draft_ms, verdict),
                    guarantee=guarantee,
                    note=draft.note,
                    verdict=verdict,
                    way=target.capabilities.way,
                )
                yield from watch.paused([*verified, metrics])
        except SpecvizError as exc:
            yield Error.of(exc)
            return
        yield Done(
            total_tokens=len(self.output),
            total_accepted=tally.accepted,
            total_drafted=tally.drafted,
            total_tested=tally.tested,
            total_rounds=tally.rounds,
            generated_text=target.tokenizer.decode(self.output),
            token_ids=tuple(self.output),
            finish_reason=self.finish,
            total=tally.total,
            tokens_per_second=tally.tokens_per_second,
            baseline_tps=self.plain.baseline_tps,
            speedup=tally.speedup,
            guarantee=guarantee if self.output else NOTHING,
            stop_string=self.stop_string,
        )

    def _started(self) -> RunStarted:
        target, limits = self.target, self.target.capabilities
        return RunStarted(
            run_id=uuid.uuid4().hex,
            target=target.name,
            draft=self.drafter.name if self.drafter else NONE,
            settings=self.settings.to_json(),
            guarantee=target.guarantee(self.sampling, self.rule),
            vocab_size=limits.vocab_size,
            max_context=limits.max_context,
            prompt_ids=tuple(self.prompt_ids),
            prompt_text=self.prompt_text,
            started_at=time.time(),
            baseline_tps=self.plain.baseline_tps,
            per_call_tps=self.plain.per_call_tps,
            baseline_kind=self.plain.kind,
            baseline_age_s=self.plain.age_s,
            place=limits.place,
            engine=limits.engine,
            precision=limits.precision,
            blas=limits.blas,
            model_file=limits.model_file,
            engine_note=limits.engine_note,
            draft_engine=getattr(self.drafter, "engine", ""),
            way=limits.way,
            simulated_rtt_ms=limits.simulated_rtt_ms,
            simulated_jitter_ms=limits.simulated_jitter_ms,
            versions=versions(),
        )

    def _compare(self, own: PlainOutput, decisions: Sequence[Decision | None], base: int) -> PlainOutput | None:
        """Look for the first token that plain decoding did not write; None where there is nothing left to compare."""
        index = own.first_difference(self.output, self.target.tokenizer)
        if index is None:
            return own if own.reaches_beyond(self.output, self.target.tokenizer) else None
        emitted = [d for d in decisions if d is not None and d.final_id is not None]
        # A text can differ at a token of an earlier round, where that ended inside a character.
        self.difference = Difference.at(index, emitted[max(0, index - base)], own)
        return None

    def _budget(self) -> int:
        room = self.target.capabilities.max_context - len(self.context)
        return min(self.settings.max_tokens - len(self.output), room)

    def _k(self) -> int:
        """Draft tokens to ask for.

        One token of the budget is left for the resampled or bonus token, so no verified token has to be discarded.
        """
        return max(0, min(self.settings.k, self._budget() - 1))

    def _propose(self, k: int, number: int) -> Draft:
        if self.drafter is None or k < 1:
            return NO_DRAFT
        noise = self._noise(number)
        try:
            return self.drafter.propose(self.context, k, self.sampling, noise, explain=self.explain)
        except ScoresError as exc:
            # A row does not say whose it is.
            raise ScoresError(exc.problem, f"The draft {self.drafter.name}") from exc

    def _round(self, draft: Draft, number: int, explain: Explain) -> Round:
        return Round(
            context_ids=tuple(self.context),
            draft=draft,
            sampling=self.sampling,
            rule=self.rule,
            noise=self._noise(number),
            stream="shared" if self.drafter is None or self.drafter.name == NONE else "target",
            explain=explain,
        )

    def _noise(self, number: int) -> Noise:
        return Noise(self.settings.seed if self.seed is None else self.seed, number)

    def _take(self, verdict: Verdict) -> tuple[list[Decision | None], int]:
        """Append what a round emits, up to the end of the output. Returns its decisions and the number of ids kept."""
        kept, self.finish, self.stop_string = _cut(
            self.output, verdict.token_ids, self._budget(), self.settings, self.target
        )
        self.output += verdict.token_ids[:kept]
        self.context += verdict.token_ids[:kept]
        if self.finish is None and len(self.context) >= self.target.capabilities.max_context:
            self.finish = "context_full"
        return [_within(d, position < kept) for position, d in enumerate(verdict.decisions)], kept


def _split(wall_ms: float, draft_ms: float, verdict: Verdict) -> TimeSplit:
    return TimeSplit(
        wall_ms=wall_ms,
        draft_ms=draft_ms,
        network_ms=verdict.network_ms,
        queue_ms=verdict.queue_ms,
        target_ms=verdict.compute_ms,
        rule_ms=verdict.rule_ms or 0.0,
        call_ms=verdict.call_ms,
    )


def _cut(
    output: Sequence[int], new: Sequence[int], budget: int, settings: Settings, target: Target
) -> tuple[int, FinishReason | None, str | None]:
    """How many of a round's ids are kept, and why the output ends there, if it does.

    The token that completes a stop is kept and everything after it is dropped, the bonus too. Ids, text,
    log-probabilities, tree and counts thus end at the same token, even when a stop string ends inside that token.
    """
    near = _end_of(output, settings.stop, target.tokenizer)
    for i, token_id in enumerate(new[:budget]):
        if token_id in target.capabilities.stop_ids:
            return i + 1, "stop_token", None
        if settings.stop:
            text = target.tokenizer.decode([*near, *new[: i + 1]])
            hit = next((s for s in settings.stop if s in text), None)
            if hit is not None:
                return i + 1, "stop_string", hit
    if len(output) + len(new) >= settings.max_tokens:
        return min(len(new), budget), "max_tokens", None
    return min(len(new), budget), None, None


#: The first character of a text that begins inside another may be incomplete, or a space that the tokenizer drops.
_CUT_BYTES = 4


def _end_of(output: Sequence[int], stops: Sequence[str], tokenizer: Tokenizer) -> Sequence[int]:
    """The last tokens of an output without a stop string, as many as one that is still to be completed can reach."""
    wanted = max((len(s.encode()) for s in stops), default=-_CUT_BYTES) + _CUT_BYTES
    at = len(output)
    while wanted > 0 and at > 0:
        at -= 1
        wanted -= len(tokenizer.token_bytes(output[at]))
    return output[at:]


def _within(decision: Decision, inside: bool) -> Decision | None:
    """A decision inside the output as it is; after its end, the draft token counts as ignored, a bonus is dropped."""
    if inside or decision.status == "ignored":
        return decision
    if decision.draft_id is None:
        return None
    return Decision(status="ignored", draft_id=decision.draft_id, final_id=None)


def _draft_events(candidate: Candidate, number: int, base: int, tokenizer: Tokenizer) -> list[Event]:
    return [
        DraftToken(
            round=number,
            position=i,
            index=base + i,
            token=tokenizer.token_name(token_id),
            token_id=token_id,
            token_bytes=tokenizer.token_bytes(token_id),
            logprob=candidate.logprobs[i],
            entropy=candidate.entropies[i],
            top_tokens=candidate.alternatives[i],
            draft_time_ms=candidate.times_ms[i],
        )
        for i, token_id in enumerate(candidate.token_ids)
    ]


def _verify_events(
    decisions: Sequence[Decision | None],
    candidate: Candidate,
    number: int,
    base: int,
    verify_ms: float,
    tokenizer: Tokenizer,
) -> list[Event]:
    name_of = tokenizer.token_name
    return [
        VerifyResult(
            round=number,
            position=i,
            index=base + i,
            status=d.status,
            draft_token=None if d.draft_id is None else name_of(d.draft_id),
            draft_token_id=d.draft_id,
            final_token=None if d.final_id is None else name_of(d.final_id),
            final_token_id=d.final_id,
            final_token_bytes=None if d.final_id is None else tokenizer.token_bytes(d.final_id),
            draft_logprob=candidate.logprobs[i] if d.draft_id is not None else None,
            target_logprob=d.draft_logprob_target,
            final_logprob=d.final_logprob,
            acceptance_prob=d.acceptance,
            p=d.p,
            q=d.q,
            u=d.u,
            entropy=d.entropy,
            top_tokens=d.alternatives,
            verify_latency_ms=verify_ms,
            weighed=d.weighed,
            overlap=d.overlap,
            candidate=d.candidate,
        )
        for i, d in enumerate(decisions)
        if d is not None
    ]
