"""What planning needs to know about a draft, a target and a machine: how much is kept, and what everything takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from specviz.core.cost_model import TRUSTED_ROUNDS, CostModel, VerifyCurve
from specviz.core.events import Metrics, TimeSplit, Way
from specviz.core.settings import K_MAX
from specviz.core.tally import rate
from specviz.record.state import RunState

#: A block length is a point of the curve if at least this share of the rounds, and so many rounds, have it.
_POINT_SHARE, _POINT_ROUNDS = 0.1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(CostModel):
    """What was measured, or what somebody assumes: a cost model with the plain decoding that it is compared with.

    Attributes:
        source: where it is from, for a person; may hold names that somebody else chose.
        reached: per position, rounds that tested the token there.
        alpha: accepted / tested.
        plain_ms: of a token of plain decoding, which streams where the target is remote.
        per_call_ms: of a plain token that is a call of its own; None where that is `plain_ms` and a round trip.
        rtt_ms: the simulated round trip; `verify` and the other times are without it.
        network_included: `verify` includes a real network, because the calls were not split into network and target.
        assumed: nothing was measured.
        way: how a completions target verifies, which decides what it bills. prompt_tokens, output_tokens: of the run.
    """

    source: str
    reached: tuple[float, ...]
    alpha: float
    plain_ms: float
    per_call_ms: float | None = None
    rtt_ms: float = 0.0
    network_included: bool = False
    assumed: bool = False
    way: Way | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def k(self) -> int:
        """The largest K that was measured."""
        return len(self.kept)

    def acceptance_by_position(self) -> list[float]:
        """Accepted / tested at each position, as long as enough rounds reached it."""
        enough = min(TRUSTED_ROUNDS, self.rounds)
        return [k / n for k, n in zip(self.kept, self.reached, strict=True) if n and (self.assumed or n >= enough)]

    def is_extrapolated(self, k: int) -> bool:
        """Whether nothing was measured at this position, so that the last rate is continued."""
        return not self.assumed and k > self.k

    def tokens_interval(self, k: int) -> tuple[float, float] | None:
        """95 % interval of the tokens per round at k, rounds taken as independent; None for an assumption.

        E[X²] = Σ (2j − 1) P(X ≥ j) gives the variance of the accepted tokens from the same counts.
        """
        if self.assumed or self.rounds < 2 or self.is_extrapolated(k):
            return None
        js = np.arange(1, k + 1)
        at_least = self.at_least(js)
        variance = float((at_least * (2 * js - 1)).sum() - at_least.sum() ** 2)
        half = 1.96 * (max(0.0, variance) / (self.rounds - 1)) ** 0.5
        mean = float(self.tokens_per_round(k))
        return max(1.0, mean - half), min(1.0 + k, mean + half)


def by_hand(
    alpha: float, plain_ms: float, draft_ms: float, passes: Iterable[tuple[float, float]], other_ms: float = 0.0
) -> Measured:
    """An assumption: every position is accepted with the same probability.

    Args:
        passes: (drafted tokens, ms) of calls to the target; a call without drafted tokens takes `plain_ms`.
    """
    return Measured(
        source="by hand",
        rounds=1,
        kept=tuple(alpha**j for j in range(1, K_MAX + 1)),
        proposed=(1,) * K_MAX,
        reached=tuple(alpha**j for j in range(K_MAX)),
        alpha=alpha,
        plain_ms=plain_ms,
        draft_ms=draft_ms,
        verify=VerifyCurve.of([(0, plain_ms), *passes]),
        other_ms=other_ms,
        assumed=True,
    )


def from_run(state: RunState) -> Measured | None:
    """What a run has measured so far; None while plain decoding, acceptance or times are not known.

    Times are without the first round, which reads the prompt; plain decoding reads it as well.
    """
    started, rounds = state.started, state.rounds
    alpha = rate(sum(state.kept), sum(state.reached))
    if started is None or not started.baseline_tps or len(rounds) < 2 or alpha is None or not state.proposed:
        return None
    times = rounds[1:]
    drafted = sum(m.drafted for m in times)
    plain_ms = 1000 / started.baseline_tps
    simulated = started.simulated_rtt_ms > 0
    calls = None if simulated or not started.per_call_tps else 1000 / started.per_call_tps
    other_ms = max(0.0, fmean(m.split.rule_ms + m.split.other_ms for m in times))
    return Measured(
        source=f"{started.draft} → {started.target}, K = {len(state.proposed)}",
        rounds=len(rounds),
        kept=padded(state.kept, len(state.proposed)),
        proposed=tuple(state.proposed),
        reached=padded(state.reached, len(state.proposed)),
        alpha=alpha,
        plain_ms=plain_ms,
        draft_ms=sum(m.split.draft_ms for m in times) / drafted if drafted else 0.0,
        verify=_curve(times, max(0.0, (calls or plain_ms) - other_ms)),
        other_ms=other_ms,
        per_call_ms=calls,
        rtt_ms=started.simulated_rtt_ms,
        network_included=started.place != "here",
        way=state.way_of(-1),
        prompt_tokens=len(started.prompt_ids) or None,
        output_tokens=len(state.text) or None,
    )


def padded(counts: Sequence[float], k: int) -> tuple[float, ...]:
    """The first k counts; 0 for positions that no round reached."""
    return tuple(counts[:k]) + (0,) * (k - len(counts))


def target_ms(split: TimeSplit) -> float:
    """The time of a call without the network, where the network was measured separately."""
    return split.verify_ms - (split.network_ms or 0.0)


def _curve(rounds: Sequence[Metrics], none_ms: float) -> VerifyCurve:
    """One point per block length that is common enough.

    Args:
        none_ms: of a call without drafted tokens, if no block was empty; with the rest of a round it is plain decoding.
    """
    at: dict[int, list[float]] = defaultdict(list)
    for m in rounds:
        at[m.drafted].append(target_ms(m.split))
    few = min(max(_POINT_ROUNDS, _POINT_SHARE * len(rounds)), max(map(len, at.values())))
    points = {float(length): fmean(ms) for length, ms in at.items() if len(ms) >= few}
    return VerifyCurve.of(({0.0: none_ms} | points).items())
