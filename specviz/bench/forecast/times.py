"""What one call of a target and of its drafts takes, measured at places of a text that was written before.

All calls at a place are made within seconds of each other, plain decoding among them: a machine that slows down slows
all of them alike.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

import numpy as np

from specviz.bench.forecast.follow import Expected
from specviz.core.noise import Noise
from specviz.core.ports import Drafter, Target, without_network
from specviz.core.rounds import NO_DRAFT, Candidate, Draft, Round
from specviz.core.sampling import Floats, Row
from specviz.core.settings import Rule, Sampling

#: Rounds over which each draft is timed at one place, as long as they take less time than the target's calls there.
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Place:
    """Where calls are timed.

    Attributes:
        ids: prompt and text. start: where the text begins. at: the round begins before this token of the text.
    """

    ids: tuple[int, ...]
    start: int
    at: int
    sampling: Sampling
    rule: Rule

    @property
    def context(self) -> tuple[int, ...]:
        """The tokens before the round."""
        return self.ids[: self.start + self.at]

    def copies(self, count: int) -> Draft:
        """A draft of so many tokens: those of the text, from its beginning again after its end."""
        ids = self.ids
        tokens = tuple(ids[(self.start + self.at + i) % len(ids)] for i in range(count))
        if not tokens:
            return NO_DRAFT
        rows = tuple(Row.one_hot(token) for token in tokens)
        candidate = Candidate(tokens, rows, (None,) * count, (None,) * count, ((),) * count, (0.0,) * count)
        return Draft((candidate,))


@dataclass(slots=True)
class TargetTimes:
    """Samples in ms.

    Attributes:
        plain: calls for one token, without a simulated network. calls: by drafted tokens, as a run would make them.
            Both are without the rule.
        rule: of each decided token. other: loop and bookkeeping of each round of plain decoding.
    """

    plain: list[float] = field(default_factory=list)
    calls: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    rule: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)

    @property
    def plain_ms(self) -> float | None:
        """A token of plain decoding."""
        return median(self.plain) + _middle(self.rule) + _middle(self.other) if self.plain else None

    def call_ms(self, lengths: Floats) -> Floats:
        """Calls for so many drafted tokens; linear between the lengths that were timed."""
        known = sorted(self.calls)
        found: Floats = np.interp(lengths, known, [median(self.calls[n]) for n in known])
        return found

    def round_ms(self, expected: Expected) -> float | None:
        """A mean round without its draft: the call, the rule for each token that it decides, and the loop.

        The mean is over the lengths of the blocks, because the time of a call is not linear in the length.
        """
        if not self.calls or not expected.rounds:
            return None
        calls = self.call_ms(np.arange(len(expected.lengths), dtype=np.float64))
        call = float(np.dot(calls, expected.lengths)) / expected.rounds
        return call + _middle(self.rule) * expected.tokens / expected.rounds + _middle(self.other)


@dataclass(slots=True)
class DraftTimes:
    """Samples in ms.

    Attributes:
        first: of the first token that a model draws in a block; the model may have to read the tokens since the last
            round. later: of each other token that it draws. copied: of each copied token.
        rest: the part of a call that belongs to no token. ended: the same where the draft ended early, for which a
            model may have scored one token more.
    """

    first: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    copied: list[float] = field(default_factory=list)
    rest: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)

    def add(self, candidate: Candidate, k: int, wall_ms: float) -> None:
        """Add one call for k tokens."""
        pairs = list(zip(candidate.times_ms, candidate.logprobs, strict=True))
        drawn = [ms for ms, logprob in pairs if logprob is not None]
        self.first += drawn[:1]
        self.later += drawn[1:]
        self.copied += [ms for ms, logprob in pairs if logprob is None]
        rest = max(0.0, wall_ms - sum(candidate.times_ms))
        (self.rest if len(pairs) == k else self.ended).append(rest)

    def round_ms(self, expected: Expected) -> float:
        """The draft of a mean round."""
        first, later = _mean(self.first or self.later), _mean(self.later or self.first)
        whole, ended = _mean(self.rest or self.ended), _mean(self.ended or self.rest)
        total = (
            expected.drawing * first
            + (expected.drawn - expected.drawing) * later
            + (expected.drafted - expected.drawn) * _mean(self.copied)
            + expected.ended * ended
            + (expected.rounds - expected.ended) * whole
        )
        return total / expected.rounds if expected.rounds else 0.0


def _middle(samples: Sequence[float]) -> float:
    return median(samples) if samples else 0.0


def _mean(samples: Sequence[float]) -> float:
    """Without the extremes on both sides. A draft has calls of several kinds, and their median would be of one kind."""
    cut = max(1, len(samples) // 8) if len(samples) > 3 else 0
    return fmean(sorted(samples)[cut : len(samples) - cut]) if samples else 0.0


def time_target(
    times: TargetTimes,
    target: Target,
    place: Place,
    lengths: Sequence[int],
    seed: int,
    clock: Callable[[], float],
) -> None:
    """Verify blocks of these lengths and two empty blocks, in random order.

    A first call reads the context and is not counted.

    Args:
        lengths: all fit into the target's context.
    """
    near = without_network(target)
    _verify(near, place, 0, Noise(seed), clock)
    order = np.random.default_rng(seed).permutation([0, 0, *lengths])
    for number, length in enumerate(order, start=1):
        noise = Noise(seed, number)
        call_ms, rule_ms, decided = _verify(target, place, int(length), noise, clock)
        times.calls[int(length)].append(call_ms)
        times.rule.append(rule_ms / decided)
        if length == 0:
            times.plain.append(call_ms if near is target else _verify(near, place, 0, noise, clock)[0])


def _verify(
    target: Target, place: Place, length: int, noise: Noise, clock: Callable[[], float]
) -> tuple[float, float, int]:
    began = clock()
    verdict = target.verify(
        Round(tuple(place.context), place.copies(length), place.sampling, place.rule, noise, explain=1)
    )
    wall_ms = (clock() - began) * 1000
    rule_ms = verdict.rule_ms or 0.0
    return wall_ms - rule_ms, rule_ms, len(verdict.token_ids)


def time_draft(
    times: DraftTimes,
    drafter: Drafter,
    place: Place,
    ks: Sequence[int],
    seed: int,
    clock: Callable[[], float],
    limit_s: float = math.inf,
) -> None:
    """Draft a few rounds as a run would: each begins after the tokens that the last one would have given.

    Args:
        ks: take turns, the largest first.
        limit_s: no round begins after this time, once each K had its turn.
    """
    at, order, started = place.at, sorted(ks, reverse=True), clock()
    drafter.propose(place.context, 1, place.sampling, Noise(seed), explain=1)  # reads the context
    for number in range(_ROUNDS):
        if place.start + at >= len(place.ids) or (number >= len(order) and clock() - started > limit_s):
            return
        k = order[number % len(order)]
        began = clock()
        context = place.ids[: place.start + at]
        drafted = drafter.propose(context, k, place.sampling, Noise(seed, number + 1), explain=1).first
        times.add(drafted, k, (clock() - began) * 1000)
        at += 1 + _equal(drafted.token_ids, place.ids[place.start + at :])


def _equal(one: Sequence[int], other: Sequence[int]) -> int:
    """The length of the common beginning."""
    n = min(len(one), len(other))
    return next((i for i in range(n) if one[i] != other[i]), n)


def medians(samples: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """Medians by length."""
    return {n: median(ms) for n, ms in sorted(samples.items())}
