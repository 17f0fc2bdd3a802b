"""The loop: propose, verify, keep, repeat. Nothing else in specviz loops over tokens.

Speculative decoding as in Leviathan et al. 2023 (arXiv:2211.17192), algorithm 1, one candidate per round. Both
functions are generators of events; whoever consumes them decides the pace, and the time that the consumer takes is
in no figure.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from specviz.core.errors import SpecvizError, StoppedError
from specviz.core.events import Done, DraftToken, Error, Event, FinishReason, RunStarted, TimeSplit, VerifyResult
from specviz.core.ports import NO_PROPOSAL, Candidate, Decision, Distant, Drafter, Target, Tokenizer, Verdict
from specviz.core.prompt import check_prompt
from specviz.core.settings import Settings
from specviz.core.tally import Tally


def speculative(
    drafter: Drafter,
    target: Target,
    prompt_ids: Sequence[int],
    settings: Settings,
    rng: np.random.Generator,
    *,
    prompt_text: str = "",
    baseline_tps: float | None = None,
    per_call_tps: float | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Event]:
    """Decode with a draft.

    Args:
        drafter, target: share one vocabulary.
        prompt_ids: the whole prompt, template applied.
        settings: k, sampling, rule, budget, stop strings.
        rng: every draw of drafter and target comes from it, so equal seeds give equal runs.
        prompt_text: what `prompt_ids` encodes, for the record.
        baseline_tps, per_call_tps: measured plain decoding, to compare with.
        cancelled: asked once a round; True ends the run with finish_reason "stopped".
        clock: seconds.

    Yields:
        run_started; per round draft_token (each), verify_result (each position), metrics; last done or error.

    Raises:
        PromptError: before the first event.
    """
    baselines = (baseline_tps, per_call_tps)
    return _decode(drafter, target, prompt_ids, settings, rng, prompt_text, baselines, cancelled, clock)


def autoregressive(
    target: Target,
    prompt_ids: Sequence[int],
    settings: Settings,
    rng: np.random.Generator,
    *,
    prompt_text: str = "",
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Event]:
    """Plain decoding by the same target, the baseline: one token per round, the same events."""
    return _decode(None, target, prompt_ids, settings, rng, prompt_text, (None, None), cancelled, clock)


class _Watch:
    """Time that the run itself spends: paused while the consumer holds an event."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._spent, self._since = clock, 0.0, clock()

    def pause(self) -> None:
        self._spent += self._clock() - self._since

    def resume(self) -> None:
        self._since = self._clock()

    def lap_ms(self) -> float:
        """Milliseconds since the last lap, without pauses; starts the next lap."""
        now = self._clock()
        lap, self._spent, self._since = self._spent + now - self._since, 0.0, now
        return lap * 1000


def _decode(
    drafter: Drafter | None,
    target: Target,
    prompt_ids: Sequence[int],
    settings: Settings,
    rng: np.random.Generator,
    prompt_text: str,
    baselines: tuple[float | None, float | None],
    cancelled: Callable[[], bool],
    clock: Callable[[], float],
) -> Iterator[Event]:
    baseline_tps, per_call_tps = baselines
    limits = target.capabilities
    check_prompt(prompt_ids, limits)
    context = list(prompt_ids)
    output: list[int] = []
    tally = Tally(baseline_tps)
    guarantee = target.guarantee(settings.sampling, settings.acceptance_rule)
    finish: FinishReason | None = None
    stop_string: str | None = None

    def budget() -> int:
        return min(settings.max_tokens - len(output), limits.max_context - len(context))

    def propose() -> Candidate:
        # One place is left for the resampled or bonus token, so a round never has to throw a paid token away.
        k = min(settings.k, budget() - 1)
        if drafter is None or k < 1:
            return NO_PROPOSAL
        return drafter.propose(context, k, settings.sampling, rng)[0]

    def verify(proposal: Candidate) -> Verdict:
        proposals = [proposal] if proposal.token_ids else []
        return target.verify(context, proposals, settings.sampling, settings.acceptance_rule, rng)

    watch = _Watch(clock)

    def emit(events: Sequence[Event]) -> Iterator[Event]:
        watch.pause()
        yield from events
        watch.resume()

    started = RunStarted(
        run_id=uuid.uuid4().hex,
        target=target.name,
        draft=drafter.name if drafter else "none",
        settings=settings.to_json(),
        guarantee=guarantee,
        full_rows=limits.full_rows,
        vocab_size=limits.vocab_size,
        max_context=limits.max_context,
        prompt_ids=tuple(prompt_ids),
        prompt_text=prompt_text,
        started_at=time.time(),
        baseline_tps=baseline_tps,
        per_call_tps=per_call_tps,
        way=limits.way,
        # Of the target, not of the settings: what is said is what stands there.
        simulated_rtt_ms=target.rtt_ms if isinstance(target, Distant) else 0.0,
        simulated_jitter_ms=target.jitter_ms if isinstance(target, Distant) else 0.0,
    )
    yield from emit([started])
    watch.lap_ms()
    try:
        while finish is None:
            if cancelled():
                finish = "stopped"
                break
            number, base = tally.rounds, len(output)
            began = clock()
            proposal = propose()
            draft_ms = (clock() - began) * 1000 if drafter else 0.0
            yield from emit(_draft_events(proposal, number, base, target.tokenizer))

            began = clock()
            try:
                verdict = verify(proposal)
            except StoppedError:
                finish = "stopped"
                break
            verify_ms = (clock() - began) * 1000
            kept, finish, stop_string = _cut(output, verdict.token_ids, budget(), settings, target)
            output += verdict.token_ids[:kept]
            context += verdict.token_ids[:kept]
            if finish is None and len(context) >= limits.max_context:
                finish = "context_full"
            decisions = [_within(d, position < kept) for position, d in enumerate(verdict.decisions)]
            statuses = [d.status for d in decisions if d is not None]
            accepted = statuses.count("accepted")
            guarantee = verdict.guarantee
            verified = _verify_events(decisions, proposal, number, base, verify_ms, target.tokenizer)
            split = TimeSplit(
                wall_ms=watch.lap_ms(),
                draft_ms=draft_ms,
                network_ms=verdict.network_ms,
                queue_ms=verdict.queue_ms,
                target_ms=verdict.compute_ms,
                rule_ms=verdict.rule_ms or 0.0,
                call_ms=verdict.call_ms,
            )
            metrics = tally.add(
                drafted=len(proposal.token_ids),
                tested=accepted + statuses.count("rejected"),
                accepted=accepted,
                emitted=kept,
                split=split,
                guarantee=guarantee,
                note=proposal.note,
                verdict=verdict,
            )
            yield from emit([*verified, metrics])
    except SpecvizError as exc:
        yield Error.of(exc)
        return
    yield Done(
        total_tokens=len(output),
        total_accepted=tally.accepted,
        total_drafted=tally.drafted,
        total_tested=tally.tested,
        total_rounds=tally.rounds,
        generated_text=target.tokenizer.decode(output),
        token_ids=tuple(output),
        finish_reason=finish,
        total=tally.total,
        tokens_per_second=tally.tokens_per_second,
        baseline_tps=baseline_tps,
        speedup=tally.speedup,
        guarantee=guarantee,
        stop_string=stop_string,
    )


def _cut(
    output: Sequence[int], new: Sequence[int], budget: int, settings: Settings, target: Target
) -> tuple[int, FinishReason | None, str | None]:
    """How many of a round's ids stay, and why the output ends there, if it does.

    The token that completes a stop stays and everything behind it goes, the bonus too: ids, text, log-probabilities,
    tree and counts then end at one token, also when a stop string ends inside it.
    """
    for i, token_id in enumerate(new[:budget]):
        if token_id in target.capabilities.stop_ids:
            return i + 1, "stop_token", None
        if settings.stop:
            text = target.tokenizer.decode([*output, *new[: i + 1]])
            hit = next((s for s in settings.stop if s in text), None)
            if hit is not None:
                return i + 1, "stop_string", hit
    if len(output) + len(new) >= settings.max_tokens:
        return min(len(new), budget), "max_tokens", None
    return min(len(new), budget), None, None


def _within(decision: Decision, inside: bool) -> Decision | None:
    """A decision behind the end of the output was never made: its draft token is ignored, a bonus is dropped."""
    if inside or decision.status == "ignored":
        return decision
    if decision.draft_id is None:
        return None
    return Decision(status="ignored", draft_id=decision.draft_id, final_id=None)


def _draft_events(proposal: Candidate, number: int, base: int, tokenizer: Tokenizer) -> list[Event]:
    return [
        DraftToken(
            round=number,
            position=i,
            index=base + i,
            token=tokenizer.token_name(token_id),
            token_id=token_id,
            token_bytes=tokenizer.token_bytes(token_id),
            logprob=proposal.logprobs[i],
            entropy=proposal.entropies[i],
            top_tokens=proposal.alternatives[i],
            draft_time_ms=proposal.times_ms[i],
        )
        for i, token_id in enumerate(proposal.token_ids)
    ]


def _verify_events(
    decisions: Sequence[Decision | None],
    proposal: Candidate,
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
            draft_logprob=proposal.logprobs[i] if d.draft_id is not None else None,
            target_logprob=d.draft_logprob_target,
            final_logprob=d.final_logprob,
            acceptance_prob=d.acceptance,
            p=d.p,
            q=d.q,
            u=d.u,
            entropy=d.entropy,
            top_tokens=d.alternatives,
            verify_latency_ms=verify_ms,
            candidates=d.candidates,
            overlap=d.overlap,
        )
        for i, d in enumerate(decisions)
        if d is not None
    ]
