"""What a few log-probabilities of a row tell about p, and how far off a round's output can be for what they do not.

A server that scores gives, per position, the N most probable tokens with their log-probabilities at temperature 1.
The probability of any token after top-k and top-p needs the whole row for its normaliser only, so nearly all is known:

    a    1/T                     P    the N known tokens         m    1 - Σ_P p₁, the tail's mass at temperature 1
    p₁   the row at T = 1        p    p₁ᵃ / Z, the wanted row     c    the least p₁ in P: no tail token has more
    Z    Σ p₁ᵃ                   p̂    p₁ᵃ / Ẑ, what we take it for
    r    Z / Ẑ, so that p̂ = r·p for every token, with one r for the whole row
    n    V - N, tokens in the tail         τ    Σ_tail p, the tail's true share

**The interval of Z.** Σ_tail p₁ᵃ with Σ_tail p₁ = m and 0 ≤ p₁ ≤ c over n tokens. For a > 1 the terms are convex: least
when spread evenly, n·(m/n)ᵃ (Jensen), most when packed into tokens of c, ⌊m/c⌋·cᵃ + (rest)ᵃ (an even pair can always be
drawn apart until one of them is 0 or c, and the sum grows). For a < 1 they are concave and the two swap. At a = 1 both
are m. With Ẑ the middle of [Zlo, Zhi], |r - 1| ≤ e = (Zhi - Zlo)/(Zhi + Zlo). P is always the N best of the row, never
the token being tested, so r does not depend on what the draft drew.

**Thinning alone.** Keep x ~ q with min(1, p̂/q); else draw y ~ p (the server's own samples) until one passes with
probability (1 - q/p̂)⁺. With g = (p̂ - q)⁺, S = Σ g and R = Σ (q - p̂)⁺ = S + 1 - r, the output is
out = min(q, p̂) + R·g/S = p̂ - g + R·g/S, so out - p = (r - 1)·p + (1 - r)·g/S and the total variation is
½Σ|out - p| ≤ |r - 1| ≤ e. It is 0 for r = 1. A refusal needs r/S samples and happens with R: one per tested position.

**The N best first.** A virtual sample is drawn here: from P by p̂, and with the rest, C = (1 - Σ_P p̂)⁺, a sample of the
server's from outside P; then thinned the same way. Its masses v are p̂ on P and C·p/τ in the tail, and
Σ|v - p̂| = |C - rτ| = |(1 - r·(1-τ)) - rτ| = |1 - r| (or less, when cut at 0). With f = v·(1 - q/p̂)⁺ and S' = Σ f,
out = p̂ - g + R·f/S', and ½Σ|out - p| ≤ ½(|r - 1| + Σ|R·f/S' - f| + Σ|f - g|) where the second term is |R - S'| ≤
|R - S| + |S - S'| ≤ |1 - r| + |1 - r| and the third at most |1 - r|: in all 2|r - 1| ≤ 2e. It is 0 for r = 1.
The draws from P in a row that end nowhere need not be made: before the server is asked, P delivers with
A/(A + C), A = Σ_P g, and then by g.

**Giving up.** With r = 1 both loops end, and nothing is given up. With r ≠ 1 they need not: S or τ may be 0.
After J looks at the tail an own sample stands unthinned; that alone would be off by S ≤ S' + e, and it comes with
probability ≤ (1 - S')ᴶ: (S' - e)(1 - S')ᴶ ≤ (1 - e)ᴶ/2.7J is added at most. When H own samples lie in P, the next
one is taken wherever it lies: then v is p̂ + C·h·p on P and C·(h + (1-h)/τ)·p in the tail with h = (1 - τ)ᴴ, which moves
Σ|v - p̂| by at most 2τh, and the output by as much. `slack` is the sum of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, e, exp, floor, log

import numpy as np

from specviz.sampling import Floats, Ids, Row
from specviz.settings import Sampling

#: What single precision leaves uncertain in a sum of probabilities.
ROUNDING = 2e-6
#: Log-probabilities nearer than this are a tie: another order of summation may turn them round.
TIE = 1e-6
#: H: own samples that may lie in P before the next is taken wherever it lies. Only where r is not known to be 1.
HOLD = 128


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of p at one position.

    Attributes:
        ids: (N,) P, best first. probs: (N,) their p̂, 0 for those that top-k or top-p leave out.
        tail: C, what p̂ leaves for all other tokens; 0 where they are left out, or too few to matter.
        error: e; 0 where p̂ is p.
        tail_low, tail_high: bounds of τ.
        power, log_z: a and ln Ẑ.
    """

    ids: Ids
    probs: Floats
    tail: float
    error: float = 0.0
    tail_low: float = 0.0
    tail_high: float = 0.0
    power: float = 1.0
    log_z: float = 0.0

    def prob(self, token_id: int, logprob: float | None) -> float:
        """p̂ of any token; `logprob` is its own at temperature 1, and is used where it is not in P.

        Raises:
            ValueError: the token is in the tail, and without a log-probability.
        """
        at = np.flatnonzero(self.ids == token_id)
        if len(at):
            return float(self.probs[at[0]])
        if self.tail == 0:
            return 0.0
        if logprob is None:
            raise ValueError(f"token {token_id} is none of the best, and comes without a log-probability")
        return exp(min(0.0, self.power * logprob - self.log_z))

    @property
    def looks(self) -> int:
        """J: how often the tail is looked at before an own sample stands. Only where r is not known to be 1."""
        return ceil(4 / self.error)

    @property
    def slack(self) -> float:
        """What giving up after `looks` and `HOLD` can cost, in total variation."""
        if self.error == 0:
            return 0.0
        share = min(max(1 / (HOLD + 1), self.tail_low), self.tail_high)  # where share·(1-share)ᴴ is greatest
        return 2 * share * (1 - share) ** HOLD + (1 - self.error) ** self.looks / (e * self.looks)

    @property
    def epsilon(self) -> float:
        """Total variation of the token that stands at this position, at most; without a P it is thinning alone."""
        return min(1.0, (2 if len(self.ids) else 1) * self.error + self.slack)


def know(
    ids: Sequence[int], logprobs: Sequence[float], sampling: Sampling, vocab_size: int, *, whole: bool = True
) -> Known | None:
    """What the best tokens of a row tell about p under these settings.

    The N best must be those of the row, whatever token was scored: see the head of this file.

    Args:
        ids, logprobs: (N,) best first, natural log at temperature 1.
        vocab_size: V; an upper bound is one too.
        whole: no token that is missing is more probable than one that is there.

    Returns:
        None where it is undecided which tokens top-k or top-p keep. That depends on the row alone, never on a drawn
        token, so the target's own draw can decide such a position without a bias.
    """
    known, best = np.asarray(ids, dtype=np.int64), np.asarray(logprobs, dtype=np.float64)
    if sampling.temperature == 0:
        return Known(known, np.eye(1, len(known))[0], 0.0)
    power = 1 / sampling.temperature
    top = float(best[0]) if len(best) else 0.0
    weights = np.exp(power * (best - top))
    low, high = _tail(best, top, power, vocab_size - len(known), whole)
    if sampling.top_k or sampling.top_p < 1:
        kept = _kept(best, weights, (low, high), sampling, vocab_size)
        if kept is None:
            return None
        if kept < vocab_size:
            cut = np.where(np.arange(len(known)) < kept, weights, 0.0)
            return Known(known, cut / cut.sum(), 0.0)
    inside = float(weights.sum())
    z = inside + (low + high) / 2
    error = (high - low) / (2 * z)
    return Known(
        ids=known,
        probs=weights / z,
        tail=max(0.0, 1 - inside / z),
        error=error,
        tail_low=low / (inside + low),
        tail_high=high / (inside + high),
        power=power,
        log_z=power * top + log(z),
    )


def _tail(best: Floats, top: float, power: float, n: int, whole: bool) -> tuple[float, float]:
    """Bounds of Σ p₁ᵃ over the n tokens that are not known, as multiples of the best token's p₁ᵃ."""
    mass = 1 - float(np.exp(best).sum())
    if n <= 0:
        return 0.0, 0.0
    if power == 1:
        both = max(0.0, mass) * exp(-top) if mass > ROUNDING else 0.0
        return both, both
    cap = exp(best[-1] if whole and len(best) else top)
    least, most = max(0.0, mass - ROUNDING), max(0.0, mass + ROUNDING)
    if power > 1:
        return _spread(least, top, power, n), _packed(most, cap, top, power)
    return _packed(least, cap, top, power), _spread(most, top, power, n)


def _spread(mass: float, top: float, power: float, n: int) -> float:
    return n * exp(power * (log(mass / n) - top)) if mass > 0 else 0.0


def _packed(mass: float, cap: float, top: float, power: float) -> float:
    full = floor(mass / cap)
    rest = mass - full * cap
    return full * exp(power * (log(cap) - top)) + (exp(power * (log(rest) - top)) if rest > 0 else 0.0)


def _kept(best: Floats, weights: Floats, tail: tuple[float, float], sampling: Sampling, vocab_size: int) -> int | None:
    """How many of the best tokens top-k and top-p keep; `vocab_size` for all, None where it cannot be told.

    Servers differ in whether top-p counts shares of what top-k has left or of the whole row, and in which of two tied
    tokens falls to a cut: where that matters, it cannot be told.
    """
    limit = sampling.top_k if 0 < sampling.top_k < vocab_size else vocab_size
    inside = float(weights.sum())
    if limit < vocab_size and limit > len(best):
        return None
    totals = {inside + tail[0], inside + tail[1]}
    if limit < vocab_size:
        totals.add(float(weights[:limit].sum()))
    kept = {_nucleus(weights[:limit], total, sampling.top_p, limit) for total in totals}
    count = kept.pop()
    if kept or count is None or (count < len(best) and best[count - 1] - best[count] < TIE):
        return None
    return count


def _nucleus(weights: Floats, total: float, top_p: float, limit: int) -> int | None:
    """How many tokens it takes to reach a share; None where too few are known, or rounding decides."""
    if top_p >= 1:
        return limit
    shares = np.cumsum(weights) / total
    if np.any(np.abs(shares - top_p) < ROUNDING):
        return None
    count = int(np.searchsorted(shares, top_p)) + 1
    if count <= len(shares):
        return count
    return limit if limit == len(weights) else None


def keeps(p: float, q: float) -> float:
    """With what probability a draft token stays, min(1, p/q)."""
    return 1.0 if p >= q else p / q


def passes(p: float, q: float) -> float:
    """With what probability a sample from p stands for the residual, (1 - q/p)⁺."""
    return 1 - q / p if p > q else 0.0


def left(known: Known, q: Row | None) -> Floats:
    """(N,) what the residual has on P, (p̂ - q)⁺; without a q, p̂ itself."""
    if q is None:
        return known.probs
    return np.maximum(known.probs - [q.prob(int(i)) for i in known.ids], 0.0)
