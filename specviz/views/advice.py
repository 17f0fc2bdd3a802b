"""Advice from a run's own numbers: a better K, and what makes the run slow. An estimate is labelled as one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from specviz.core.cost_model import CostModel, VerifyCurve
from specviz.core.events import TimeSplit
from specviz.record.state import RunState
from specviz.views import words
from specviz.views.speed import is_remote, is_simulated, speeds

#: Rounds needed for advice on K, and for saying what is slow.
ROUNDS_FOR_K, ROUNDS_FOR_SLOW = 20, 5
#: The gain from which an estimate is shown, and the shares of unused draft tokens from which drafts count as wasted.
_WORTH, _WASTED, _NEARLY_ALL = 1.1, 0.5, 0.8

_DOING: dict[str, str] = {
    "draft": "drafting",
    "network": "the network",
    "waiting": "waiting for the server",
    "target": "computing the target",
    "call": "the calls to the server",
    "rule": "the acceptance rule",
    "other": "the loop itself",
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """What another K would have given.

    Attributes:
        k: tokens to draft. tokens_per_second: estimated for it. now: as measured with the K of the run.
        verify_shrinks: whether verifying a shorter block was assumed to be cheaper, down to the time of a plain token;
            where that is not measured, the same time was assumed.
    """

    k: int
    tokens_per_second: float
    now: float
    verify_shrinks: bool

    @property
    def gain(self) -> float:
        """Times as fast."""
        return self.tokens_per_second / self.now


def advice(state: RunState) -> list[str]:
    """Sentences to show under the numbers of a run; none while all is well or too little is known."""
    return [sentence for sentence in (what_is_slow(state), wasted_drafts(state)) if sentence]


def best_k(state: RunState) -> Estimate | None:
    """The K, up to the one in use, that would have been the fastest in this run; None where that is not known.

    Cutting the blocks at k keeps what was kept before position k, so the tokens per round are counted, not modelled.
    Drafting time is proportional to the drafted tokens. Verification time lies between that of a plain token (the
    measured baseline) and that of the whole block. The rest of a round is constant. The first round is left out.
    """
    count, now = len(state.rounds), speeds(state).speculative
    if count < ROUNDS_FOR_K or not now or not state.sums.drafted:
        return None
    mean, whole, drafted = _mean_times(state), len(state.proposed), sum(state.proposed) / count
    verify_one = min(_plain_token_ms(state) or mean.verify_ms, mean.verify_ms)
    model = CostModel(
        rounds=count,
        kept=(*state.kept, *[0] * (whole - len(state.kept))),
        proposed=tuple(state.proposed),
        draft_ms=mean.draft_ms / drafted,
        verify=VerifyCurve(((0.0, verify_one), (drafted, mean.verify_ms))),
        other_ms=mean.rule_ms + max(0.0, mean.other_ms),
    )
    best = model.best_k(range(1, whole + 1))
    speed_best, speed_whole = model.tokens_per_second([best, whole])
    if not speed_whole:
        return None
    return Estimate(best, now * float(speed_best / speed_whole), now, verify_one < mean.verify_ms)


def wasted_drafts(state: RunState) -> str:
    """That most draft tokens are unused, or that another K would be faster; empty where neither is so."""
    estimate, thrown = best_k(state), state.sums.drafted - state.sums.accepted
    if estimate is None:
        return ""
    share = thrown / state.sums.drafted
    wasted = f"Wasted drafts: {words.percent(share)} of the drafted tokens were thrown away "
    wasted += f"({thrown:,} of {state.sums.drafted:,})."
    if estimate.gain >= _WORTH:
        return f"{wasted} {_in_words(estimate, state)}" if share >= _WASTED else _in_words(estimate, state)
    if share < _NEARLY_ALL:
        return ""
    return f"{wasted} Estimated from this run's times, a smaller K is hardly faster: drafting costs little."


def what_is_slow(state: RunState) -> str:
    """What takes most of the time in a run that is slower than its baseline; empty for a faster run."""
    speedup, latest = speeds(state).speedup, state.latest
    if speedup is None or speedup >= 1 or latest is None or len(state.rounds) < ROUNDS_FOR_SLOW:
        return ""
    mean = _mean_times(state)
    parts = {
        "draft": mean.draft_ms, "network": mean.network_ms, "waiting": mean.queue_ms, "target": mean.target_ms,
        "call": mean.call_ms, "rule": mean.rule_ms, "other": mean.other_ms,
    }  # fmt: skip
    part, most = max(((name, ms or 0.0) for name, ms in parts.items()), key=lambda named: named[1])
    tokens = (state.sums.emitted - state.rounds[0].emitted) / (len(state.rounds) - 1)
    largest = f"{_ms(most)} or {words.percent(most / mean.wall_ms)}"
    return (
        f"Slower than {state.baseline}: a round takes {_ms(mean.wall_ms)} for {words.number(tokens)} tokens, "
        f"{state.baseline} {_ms(mean.wall_ms * speedup)} for the same number. "
        f"The largest part, {largest}, is {_DOING[part]}."
    )


def _in_words(estimate: Estimate, state: RunState) -> str:
    verify = (
        "assuming that verification takes between the time of a plain token and that of the block"
        if estimate.verify_shrinks
        else "assuming that verification takes the same time for fewer tokens"
    )
    plain = speeds(state).plain
    faster = plain is not None and plain > estimate.tokens_per_second
    tps, now = (words.number(value, 1) for value in (estimate.tokens_per_second, estimate.now))
    return (
        f"Estimate: K = {estimate.k} would give about {tps} tokens/s instead of {now}. It is computed from this run's "
        f"acceptance by position over {len(state.rounds):,} rounds and its measured times, {verify}."
        + (
            f" {str(state.baseline).capitalize()}, at {words.number(plain, 1)}, would still be faster."
            if faster
            else ""
        )
    )


def _mean_times(state: RunState) -> TimeSplit:
    """Per round, without the first one, which reads the prompt."""
    assert state.latest is not None
    total, first, count = state.latest.total, state.rounds[0].split, len(state.rounds) - 1
    return TimeSplit(*(_mean(getattr(total, f.name), getattr(first, f.name), count) for f in fields(TimeSplit)))


def _mean(total: float | None, first: float | None, count: int) -> Any:
    return None if total is None else (total - (first or 0.0)) / count


def _plain_token_ms(state: RunState) -> float | None:
    """The time of a round that verifies nothing: one plain token, over the network where the run uses one."""
    speed = speeds(state)
    tps = speed.per_call if is_remote(state) or is_simulated(state) else speed.plain
    return 1000 / tps if tps else None


def _ms(value: float) -> str:
    return words.number(value, 1 if value < 100 else 0, "ms")
