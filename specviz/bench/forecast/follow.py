"""What a draft buys on a text that is already there: expected counts, worked out instead of run.

A target decodes the same text with a draft as without one, as long as the rule loses nothing. So one text per prompt is
enough for every draft, K and rule: what is left to chance is where rounds begin and end in it, and that is a sum over
the text. Letters as in `specviz.core.sampling`; y is the token that stands in the text.

Given the text, the draft token at a position was the one that stayed with a probability of its own: it is drawn and
kept with probability min(p(y), q(y)), y stands there with probability p(y), hence min(1, q(y) / p(y)). Its mean over
y ~ p is Σ min(p, q), Leviathan's α; taking α itself at every position would take a block for one whose positions know
nothing of each other. At temperature 0 it is 1 or 0, and nothing is left to chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from specviz.core.sampling import Floats, Row, overlap
from specviz.core.settings import K_MAX, Rule


def keep_probability(p: Floats, q: Row, rule: Rule) -> float:
    """The chance that a token drawn from q is kept, whatever it is.

    Args:
        p: (V,) target. q: draft; what it has beyond p's vocabulary is never kept.
    """
    match rule.name:
        case "probabilistic":
            return overlap(p, q)
        case "deterministic":
            return _mass(q, p)
        case "greedy":
            return q.prob(int(np.argmax(p)))
        case "threshold":
            return _mass(q, (p >= rule.tau).astype(np.float64))


def kept_in_text(p: Floats, q: Row, token: int, rule: Rule) -> float:
    """The chance that the draft token was kept at a position where, in the end, `token` stands.

    Exact for the lossless rules, on a text that the target has drawn from its own p; for `greedy`, on one of the
    target's most probable tokens. What `threshold` would have written is another text for each draft: there it is the
    chance on the target's own.

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
        keep: (n,) the chance that each token is kept, if it is reached. Beyond the text it is never asked for.
        copied: (n,) whether it costs no pass of a model.
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
        drawn: drafted tokens that took a pass of a draft model. drawing: rounds with such a token.
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
        """Put the counts of another text to these."""
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

    Goes through the text once: `share` is the chance that a round begins at a place, and each round hands it on to the
    places where the next one may begin.

    Args:
        blocks: one for each token of the text: what would be drafted if a round began in front of it.
        k: draft tokens a round; blocks may be longer.
        budget: of the run, at least the length of the text: as the loop does, it leaves one place of it to the token
            of the target's own.
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
        # All that was tested was kept: one more token, unless the text ends here.
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
