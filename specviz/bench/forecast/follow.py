"""What a draft saves on a given text: expected counts, computed without a run.

With an exact rule the target decodes the same text with a draft as without one. So one text per prompt is enough for
every draft, K and rule: only where rounds begin and end in it is random, and the expected counts are a sum over the
text. Letters as in `specviz.core.sampling`; y is the token of the text.

Given the text, a draft token is kept at a position with probability min(1, q(y) / p(y)): it is drawn and kept with
probability min(p(y), q(y)), and y is the token there with probability p(y). The mean over y ~ p is Σ min(p, q),
Leviathan's α. Taking α at every position would treat the positions of a block as independent. At temperature 0 the
probability is 1 or 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from specviz.core.sampling import Floats, Row, overlap
from specviz.core.settings import K_MAX, Rule


def keep_probability(p: Floats, q: Row, rule: Rule) -> float:
    """The probability that a token drawn from q is kept.

    Args:
        p: (V,) target. q: draft; ids beyond p's vocabulary are never kept.
    """
    match rule.name:
        case "probabilistic":
            return overlap(Row(p), q)
        case "deterministic":
            return _mass(q, p)
        case "greedy":
            return q.prob(int(np.argmax(p)))
        case "threshold":
            return _mass(q, (p >= rule.tau).astype(np.float64))


def kept_in_text(p: Floats, q: Row, token: int, rule: Rule) -> float:
    """The probability that the draft token was kept at a position where the text has `token`.

    Exact for the lossless rules, on a text that the target has drawn from p; for `greedy`, on a text of the target's
    most probable tokens. With `threshold` each draft leads to another text: the value is that on the target's text.

    Args:
        p: (V,) target; of a text of temperature 0, one-hot. q: draft.
    """
    match rule.name:
        case "probabilistic":
            own, drafted = float(p[token]), q.prob(token)
            return min(1.0, drafted / own) if own > 0 else float(drafted > 0)
        case "deterministic" | "greedy":
            return q.prob(token)
        case "threshold":
            return keep_probability(p, q, rule)


def _mass(q: Row, weights: Floats) -> float:
    """Σ q · weights, over the ids that both have."""
    if q.ids is None:
        n = min(len(weights), len(q.probs))
        return min(1.0, float(np.dot(q.probs[:n], weights[:n])))
    n = int(np.searchsorted(q.ids, len(weights)))
    return min(1.0, float(np.dot(q.probs[:n], weights[q.ids[:n]])))


@dataclass(frozen=True, slots=True)
class FollowedBlock:
    """What a draft would propose at one place of a text.

    Attributes:
        keep: (n,) the probability that each token is kept, if it is reached. Beyond the text it is not used.
        copied: (n,) whether the token was copied, without a pass of a model.
    """

    keep: tuple[float, ...]
    copied: tuple[bool, ...]


def _zeros() -> Floats:
    return np.zeros(K_MAX + 1)


@dataclass(slots=True)
class Expected:
    """Expected counts over one text, or over several together.

    Attributes:
        tokens: of the texts. rounds, drafted, tested, accepted: as a run counts them.
        drawn: drafted tokens that took a pass of a draft model. drawing: rounds with at least one such token.
        ended: rounds whose draft ended before K, other than at the end of the text.
        lengths: rounds by the number of drafted tokens. reached, kept: per position of the block.
    """

    tokens: int = 0
    rounds: float = 0.0
    drafted: float = 0.0
    tested: float = 0.0
    accepted: float = 0.0
    drawn: float = 0.0
    drawing: float = 0.0
    ended: float = 0.0
    lengths: Floats = field(default_factory=_zeros)
    reached: Floats = field(default_factory=_zeros)
    kept: Floats = field(default_factory=_zeros)

    def add(self, more: Expected) -> None:
        """Add the counts of another text."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(more, name))

    @property
    def acceptance(self) -> float | None:
        """Accepted / tested."""
        return _share(self.accepted, self.tested)

    @property
    def accepted_per_round(self) -> float | None:
        """The mean accepted length."""
        return _share(self.accepted, self.rounds)

    @property
    def tokens_per_round(self) -> float | None:
        """With the resampled or bonus token."""
        return _share(self.tokens, self.rounds)


def expect(blocks: Sequence[FollowedBlock], k: int, budget: int) -> Expected:
    """Expected counts of speculative decoding that ends up with this text.

    One pass over the text: `share` is the probability that a round begins at a place, and each round distributes it
    over the places where the next one may begin.

    Args:
        blocks: one for each token of the text: what would be drafted if a round began before it.
        k: draft tokens a round; blocks may be longer.
        budget: of the run, at least the length of the text; as in the loop, one place of it is left for the token that
            the target adds.
    """
    tokens, found = len(blocks), Expected(tokens=len(blocks))
    shares = [0.0] * (tokens + 1)
    shares[0] = 1.0
    for at, block in enumerate(blocks):
        share = shares[at]
        if share == 0.0:
            continue
        allowed = max(0, min(k, budget - at - 1))
        keep = block.keep[:allowed]
        _count_draft(found, share, block.copied[: len(keep)], min(allowed, tokens - at))
        reach = share
        for position, chance in enumerate(keep[: tokens - at]):
            found.reached[position] += reach
            shares[at + position + 1] += reach * (1.0 - chance)
            reach *= chance
            found.kept[position] += reach
        # The whole block was kept: one more token, unless the text ends here.
        shares[min(tokens, at + len(keep) + 1)] += reach
    found.tested, found.accepted = float(found.reached.sum()), float(found.kept.sum())
    return found


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _count_draft(found: Expected, share: float, copied: Sequence[bool], wanted: int) -> None:
    drafted, drawn = len(copied), len(copied) - sum(copied)
    found.rounds += share
    found.drafted += share * drafted
    found.drawn += share * drawn
    found.drawing += share * (drawn > 0)
    found.ended += share * (drafted < wanted)
    found.lengths[drafted] += share
