"""What a few log-probabilities of a row tell about p, and a bound on the error that the missing ones cause.

A server that scores gives, per position, the N most probable tokens with their log-probabilities at temperature 1.
Only the normaliser of p needs the whole row. The notation:

    a    1/T                     P    the N known tokens         m    1 - Σ_P p₁, the tail's mass at temperature 1
    p₁   the row at T = 1        p    p₁ᵃ / Z, the wanted row     c    the least p₁ in P: no tail token has more
    Z    Σ p₁ᵃ                   p̂    p₁ᵃ / Ẑ, our estimate of p
    r    Z / Ẑ, so that p̂ = r·p for every token, with one r for the whole row
    n    V - N, tokens in the tail         τ    Σ_tail p, the tail's true share

**The interval of Z.** Σ_tail p₁ᵃ with Σ_tail p₁ = m and 0 ≤ p₁ ≤ c over n tokens. For a > 1 the terms are convex: the
sum is least when m is spread evenly, n·(m/n)ᵃ (Jensen), and greatest when it is packed into tokens of c,
⌊m/c⌋·cᵃ + (rest)ᵃ (moving mass from the smaller of two tokens to the larger, until one of them is 0 or c, increases the
sum). For a < 1 the terms are concave and the two bounds swap. At a = 1 both are m. With Ẑ in the middle of [Zlo, Zhi],
|r - 1| ≤ e = (Zhi - Zlo)/(Zhi + Zlo). P is always the N best of the row and never depends on the token being tested, so
r does not depend on what the draft drew.

**Thinning alone.** Keep x ~ q with min(1, p̂/q); else draw y ~ p (the server's own samples) until one passes with
probability (1 - q/p̂)⁺. With g = (p̂ - q)⁺, S = Σ g and R = Σ (q - p̂)⁺ = S + 1 - r, the output is
out = min(q, p̂) + R·g/S = p̂ - g + R·g/S, so out - p = (r - 1)·p + (1 - r)·g/S and the total variation is
½Σ|out - p| ≤ |r - 1| ≤ e. It is 0 for r = 1. A rejection has probability R and needs r/S samples on average, so a
tested position needs one on average where r = 1.

**The N best first.** A virtual sample is drawn here: from P by p̂, or, with the remaining probability
C = (1 - Σ_P p̂)⁺, a sample of the server from outside P. Then it is thinned in the same way. Its masses v are p̂ on P
and C·p/τ in the tail; their sum is 1. For any masses v = κ·p̂ with f = κ·g, S' = Σ f, D⁺ = Σ (κ-1)⁺p̂ and
D⁻ = Σ (1-κ)⁺p̂, so that D⁺ - D⁻ = 1 - r:
    out - p = (r - 1)·p + (R·κ/S' - 1)·g        R - S' = (1 - r) - Σ (κ-1)·g, which lies in [-D⁻, D⁺]
For r ≤ 1 the total variation is the sum of the negative parts: 1 - r of the first term, and of the second
(1-κ)⁺g + (1 - R/S')⁺κ·g, in sum D⁻ + (S' - R)⁺ ≤ 2D⁻. For r > 1 it is the sum of the positive parts, r - 1 and at most
2D⁺. So it is at most |r - 1| + 2·min(D⁺, D⁻). Here κ is 1 on P, and in the tail one constant: one of D⁺ and D⁻ is 0,
also where C was cut at 0, and **the total variation is at most |r - 1| ≤ e**, 0 for r = 1.
Draws from P that thinning would drop need not be made: with A = Σ_P g, the next sample is from P with probability
A/(A + C), and then drawn by g. No call is needed for it.

**Giving up.** With r = 1 both loops end; a limit is needed only for a share that is lost in rounding, or for a server
whose samples contradict its row. With r ≠ 1 the loops need not end, because S or τ may be 0.
After H samples of the server in P, the next one is taken wherever it lies: with h = (1 - τ)ᴴ, C·h·(1-τ) of v moves from
the tail to P. Then min(D⁺, D⁻) ≤ τ·h, since C ≤ τ + (1 - r)⁺; so 2τh is added.
After J looks at the tail, a sample of the server is used without thinning. Alone this would have the error S
(out - p = S·p - g), where S - S' = Σ (1-κ)·g ≤ D⁻ ≤ (r - 1)⁺ + τh. It happens with probability ≤ (1 - S')ᴶ, so
S'(1 - S')ᴶ ≤ 1/2.7J is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, e, exp, floor, log

import numpy as np

from specviz.core.sampling import Floats, Ids, Row
from specviz.core.settings import Sampling

#: Rounding error of single precision in a sum of probabilities.
ROUNDING = 2e-6
#: Log-probabilities that differ by less are a tie: another order of summation can reverse them.
TIE = 1e-6
#: H where r is not known to be 1.
HOLD = 128
# e⁻³⁷ is about the rounding error of a double. A rarer event is taken for impossible.
_NEVER = 37
# A loop may give up on a share below this: the effect is below the rounding of log-probabilities.
_RARE = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of p at one position.

    Attributes:
        ids: (N,) P, most probable first. probs: (N,) their p̂, 0 for those that top-k or top-p cut off.
        tail: C, the share of all other tokens; 0 where they are cut off, or their share is below the rounding.
        error: e; 0 where p̂ = p.
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
        """p̂ of any token. `logprob`, its log-probability at temperature 1, is needed only for a token outside P.

        Raises:
            ValueError: the token is in the tail, and `logprob` is None.
        """
        at = np.flatnonzero(self.ids == token_id)
        if len(at):
            return float(self.probs[at[0]])
        if self.tail == 0:
            return 0.0
        if logprob is None:
            raise ValueError(f"token {token_id} is none of the most probable ones, and comes without a log-probability")
        return exp(min(0.0, self.power * logprob - self.log_z))

    def looks(self, refused: float = 0.0) -> int:
        """J: the number of looks at the tail before a sample is used without thinning.

        Args:
            refused: q(x) - p̂(x) of the rejected token; if r is 1, a look succeeds with at least this probability.
        """
        return ceil(4 / self.error) if self.error else ceil(_NEVER / max(refused, _RARE))

    @property
    def patience(self) -> int:
        """H: how many samples may lie in P before the next one is taken wherever it lies."""
        return HOLD if self.error else ceil(_NEVER / max(self.tail, _RARE))

    def refutes(self, share: float) -> bool:
        """Whether the absence of this share among many samples shows that they are not from this row."""
        return self.error == 0 and share >= _RARE

    @property
    def slack(self) -> float:
        """Bound on the error of giving up, in total variation: 2τh + 1/2.7J."""
        if self.error == 0:
            return 0.0
        share = min(max(1 / (HOLD + 1), self.tail_low), self.tail_high)  # where share·(1-share)ᴴ is greatest
        return 2 * share * (1 - share) ** HOLD + 1 / (e * self.looks())

    @property
    def epsilon(self) -> float:
        """Bound on the error of the distribution of the token at this position, in total variation."""
        return min(1.0, self.error + self.slack)


def know(
    ids: Sequence[int], logprobs: Sequence[float], sampling: Sampling, vocab_size: int, *, whole: bool = True
) -> Known | None:
    """What the most probable tokens of a row tell about p at these settings.

    They must be the N best of the row, independent of the token that was scored: see the head of this file.

    Args:
        ids, logprobs: (N,) most probable first, natural log at temperature 1.
        vocab_size: V, or an upper bound of it.
        whole: no missing token is more probable than a listed one.

    Returns:
        None where it is not certain which tokens top-k or top-p keep. That depends on the row alone and not on a drawn
        token, so the target's own draw can decide at such a position without bias.
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
    if mass <= 0 or cap <= 0:
        return 0.0  # if the least probable listed token is impossible, so are all others
    full = floor(mass / cap)
    rest = mass - full * cap
    return full * exp(power * (log(cap) - top)) + (exp(power * (log(rest) - top)) if rest > 0 else 0.0)


def _kept(best: Floats, weights: Floats, tail: tuple[float, float], sampling: Sampling, vocab_size: int) -> int | None:
    """How many of the most probable tokens top-k and top-p keep; `vocab_size` for all, None where it is not certain.

    top-p applies to the shares after top-k. Which of two tied tokens a cut removes depends on the server.
    """
    limit = sampling.top_k if 0 < sampling.top_k < vocab_size else vocab_size
    inside = float(weights.sum())
    if limit < vocab_size and limit > len(best):
        return None
    totals = {inside + tail[0], inside + tail[1]} if limit == vocab_size else {float(weights[:limit].sum())}
    kept = {_nucleus(weights[:limit], total, sampling.top_p, limit) for total in totals}
    count = kept.pop()
    if kept or count is None or (count < len(best) and best[count - 1] - best[count] < TIE):
        return None
    return count


def _nucleus(weights: Floats, total: float, top_p: float, limit: int) -> int | None:
    """How many tokens reach the share `top_p`; None where too few tokens are known, or rounding would decide."""
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
    """The probability of accepting a draft token, min(1, p/q)."""
    return 1.0 if p >= q else p / q


def passes(p: float, q: float) -> float:
    """The probability of using a sample from p as one from the residual, (1 - q/p)⁺."""
    return 1 - q / p if p > q else 0.0


def left(known: Known, q: Row | None) -> Floats:
    """(N,) the residual on P, (p̂ - q)⁺; without a q, p̂ itself."""
    if q is None:
        return known.probs
    return np.maximum(known.probs - [q.prob(int(i)) for i in known.ids], 0.0)
