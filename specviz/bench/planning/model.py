"""Where speculation is worth it: over K, round trip and speed of the draft, from measurements. Pure functions.

`specviz.core.cost_model` has the tokens and the time of a round. This module adds a network in front of the target, and
the plain decoding that speculation is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from specviz.bench.planning.inputs import Measured
from specviz.core.cost_model import Floats
from specviz.core.events import Way

#: What speculation is compared with. streaming: plain decoding that waits for the network once, before its first token,
#: or has no network. one call per token: each plain token waits for a round trip.
Against = Literal["streaming", "one call per token"]

#: An extrapolated K is mentioned when it promises this much more than the best measured one.
_WORTH_NAMING = 1.01


@dataclass(frozen=True, slots=True)
class Costs:
    """What can be varied: the round trip, and the time of the draft per token."""

    rtt_ms: float
    draft_ms: float


def iid_tokens_per_round(alpha: float, ks: ArrayLike) -> Floats:
    """(1 − α^(K+1)) / (1 − α): tokens per round if each position is accepted alike and independently of the others.

    Equation 1 of Leviathan et al. 2023, arXiv:2211.17192; written as the sum 1 + α + … + α^K, which holds at α = 1.
    """
    at = np.asarray(ks, dtype=np.int64)
    sums: Floats = np.cumsum(float(alpha) ** np.arange(int(at.max(initial=0)) + 1))[at]
    return sums


def baseline_ms(measured: Measured, costs: Costs, against: Against) -> float:
    """A token of plain decoding."""
    if against == "streaming":
        return measured.plain_ms
    return (measured.plain_ms if measured.per_call_ms is None else measured.per_call_ms) + costs.rtt_ms


def round_ms(measured: Measured, costs: Costs, ks: ArrayLike) -> Floats:
    """A round: the draft, one call, one round trip, the rule."""
    return measured.round_ms(ks, rtt_ms=costs.rtt_ms, draft_ms=costs.draft_ms)


def speedups(measured: Measured, costs: Costs, ks: ArrayLike, against: Against = "streaming") -> Floats:
    """Tokens per second over those of the baseline, for each k; theorem 3.8 with everything as measured."""
    per_round = round_ms(measured, costs, ks)
    return measured.tokens_per_round(ks) * baseline_ms(measured, costs, against) / per_round


def speedup(measured: Measured, k: int, costs: Costs, against: Against = "streaming") -> float:
    """The same for one k."""
    return float(speedups(measured, costs, k, against))


def iid_speedups(measured: Measured, costs: Costs, ks: ArrayLike, against: Against = "streaming") -> Floats:
    """The same if every position were accepted alike, with the measured α: only the tokens per round differ."""
    tokens = iid_tokens_per_round(measured.alpha, ks)
    return tokens * baseline_ms(measured, costs, against) / round_ms(measured, costs, ks)


def break_even_map(
    measured: Measured, costs: Costs, ks: ArrayLike, rtts: Iterable[float], against: Against = "streaming"
) -> Floats:
    """Speed-ups, (round trips, ks)."""
    return np.array([speedups(measured, replace(costs, rtt_ms=rtt), ks, against) for rtt in rtts])


def draft_map(
    measured: Measured, costs: Costs, ks: ArrayLike, drafts: Iterable[float], against: Against = "streaming"
) -> Floats:
    """Speed-ups, (draft times per token, ks)."""
    return np.array([speedups(measured, replace(costs, draft_ms=ms), ks, against) for ms in drafts])


def needed_tokens(measured: Measured, k: int, costs: Costs, against: Against = "streaming") -> float:
    """Tokens per round at which speculation is as fast as the baseline, which writes as many during a round."""
    return float(round_ms(measured, costs, k)) / baseline_ms(measured, costs, against)


def break_even_draft_ms(measured: Measured, k: int, costs: Costs, against: Against = "streaming") -> float | None:
    """The draft's time per token up to which speculation is worth it at k; None where no draft is fast enough."""
    drafted = float(measured.drafted_per_round(k))
    saved = float(measured.tokens_per_round(k)) * baseline_ms(measured, costs, against)
    left = saved - float(round_ms(measured, replace(costs, draft_ms=0.0), k))
    return left / drafted if left >= 0 and drafted > 0 else None


def break_even_rtt_ms(measured: Measured, k: int, costs: Costs, against: Against = "streaming") -> float | None:
    """The round trip up to which, or against one call per token from which, speculation is worth it at k.

    None where no round trip is. Against streaming every round waits for the network and plain decoding does not, so a
    long round trip counts against speculation. Against one call per token it counts for it, and 0 means: always.
    """
    near = replace(costs, rtt_ms=0.0)
    tokens, own = float(measured.tokens_per_round(k)), float(round_ms(measured, near, k))
    plain = baseline_ms(measured, near, against)
    if against == "streaming":
        left = tokens * plain - own
        return left if left >= 0 else None
    lacking = own - tokens * plain
    if lacking <= 0:
        return 0.0
    return lacking / (tokens - 1) if tokens > 1 else None


@dataclass(frozen=True, slots=True)
class Marginal:
    """What the k-th position adds to a round.

    Attributes:
        tokens: additional tokens per round. ms: additional time per round; for the first position, over a plain token.
        cost_tokens: tokens that rounds of k − 1, or plain decoding, would write in that time.
        gain: in speed-up.
    """

    k: int
    tokens: float
    ms: float
    cost_tokens: float
    gain: float
    is_extrapolated: bool

    @property
    def pays(self) -> bool:
        """Whether rounds with it are faster than rounds without."""
        return self.tokens > self.cost_tokens


def marginal(measured: Measured, costs: Costs, ks: Sequence[int], against: Against = "streaming") -> list[Marginal]:
    """One per k; the first position is compared with plain decoding."""
    to = np.arange(1, max(ks, default=0) + 1)
    plain = baseline_ms(measured, costs, against)
    ms = np.concatenate(([plain], round_ms(measured, costs, to)))
    tokens = np.concatenate(([1.0], measured.tokens_per_round(to)))
    speed = tokens / ms * plain
    return [
        Marginal(
            k, float(tokens[k] - tokens[k - 1]), float(ms[k] - ms[k - 1]),
            float((ms[k] - ms[k - 1]) * tokens[k - 1] / ms[k - 1]), float(speed[k] - speed[k - 1]),
            measured.is_extrapolated(k),
        )
        for k in ks
    ]  # fmt: skip


def best_k(measured: Measured, costs: Costs, ks: Sequence[int]) -> int:
    """The k of the highest speed-up, whatever it is compared with; of equals the first."""
    return measured.best_k(ks, rtt_ms=costs.rtt_ms, draft_ms=costs.draft_ms)


@dataclass(frozen=True, slots=True)
class PlannerResult:
    """Whether to speculate, and what would change the answer.

    Attributes:
        k, speedup: the best of the measured ks. interval: of the speed-up, 95 %, over the rounds that were counted:
            how well the tokens per round are known. None for an assumption.
        tokens: per round. needed: as many as the baseline writes during a round.
        rtt_ms, draft_ms: where the answer changes: the last break-even of any measured k, see `break_even_rtt_ms` and
            `break_even_draft_ms`; None where there is none.
        further: a larger, extrapolated k that promises more, with its speed-up; None if there is none.
    """

    against: Against
    k: int
    speedup: float
    interval: tuple[float, float] | None
    tokens: float
    needed: float
    rtt_ms: float | None
    draft_ms: float | None
    further: tuple[int, float] | None

    @property
    def speculate(self) -> bool | None:
        """None where the interval allows both answers."""
        if self.interval is not None and self.interval[0] <= 1 <= self.interval[1]:
            return None
        return self.speedup > 1


def answer(measured: Measured, costs: Costs, ks: Sequence[int], against: Against = "streaming") -> PlannerResult:
    """The verdict, from the measured ks among these; a larger k is only mentioned."""
    known = [k for k in ks if not measured.is_extrapolated(k)] or list(ks[:1])
    k, beyond = best_k(measured, costs, known), best_k(measured, costs, ks)
    at, there = speedup(measured, k, costs, against), speedup(measured, beyond, costs, against)
    needed = needed_tokens(measured, k, costs, against)
    tokens = measured.tokens_interval(k)
    return PlannerResult(
        against, k, at,
        (tokens[0] / needed, tokens[1] / needed) if tokens else None,
        float(measured.tokens_per_round(k)), needed,
        _last_rtt_ms(measured, known, costs, against),
        max(_some(break_even_draft_ms(measured, one, costs, against) for one in known), default=None),
        (beyond, there) if measured.is_extrapolated(beyond) and there > _WORTH_NAMING * at else None,
    )  # fmt: skip


def _last_rtt_ms(measured: Measured, ks: Sequence[int], costs: Costs, against: Against) -> float | None:
    """The last round trip at which one of these k is worth it; against one call per token, the first."""
    found = _some(break_even_rtt_ms(measured, k, costs, against) for k in ks)
    return (max if against == "streaming" else min)(found, default=None)


def _some(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


@dataclass(frozen=True, slots=True)
class Bill:
    """Prices and sizes for a target that bills by the token.

    Attributes:
        prompt_price, output_price: per million tokens; None where not given.
        prompt_tokens, output_tokens: of one answer.
    """

    prompt_price: float | None
    output_price: float | None
    prompt_tokens: int
    output_tokens: int

    def per_thousand(self, prompt: float, output: float) -> float | None:
        """Price of 1,000 output tokens if one answer is billed so many tokens; None where a price is not given."""
        if self.prompt_price is None or self.output_price is None or not self.output_tokens:
            return None
        return (prompt * self.prompt_price + output * self.output_price) / 1e6 * 1000 / self.output_tokens


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of 1,000 output tokens, None where not known."""

    streaming: float | None
    per_call: float | None
    speculative: float | None


def cost(measured: Measured, k: int, bill: Bill, way: Way) -> Prices:
    """The price of 1,000 output tokens, with speculation and without.

    Streaming bills the prompt once. Every call bills the whole text so far again, on average half of the answer: one
    call per token does so for each token, speculation for each round. Scoring bills the drafted tokens as part of the
    prompt and one token of output; prefixes bill the text K + 1 times with one token of output each; generating bills
    K + 1 tokens of output.
    """
    m = bill.output_tokens
    context = bill.prompt_tokens + (m - 1) / 2
    rounds = m / float(measured.tokens_per_round(k))
    drafted = float(measured.drafted_per_round(k))
    prompt, output = {
        "scoring": (context + drafted, 1.0),
        "prefixes": ((drafted + 1) * (context + drafted / 2), drafted + 1),
        "generating": (context, drafted + 1),
    }[way]
    return Prices(
        bill.per_thousand(bill.prompt_tokens, m),
        bill.per_thousand(m * context, m),
        bill.per_thousand(rounds * prompt, rounds * output),
    )
