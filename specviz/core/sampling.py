"""The maths of speculative decoding: from logits to probabilities, and from (p, q) to a decision.

Letters, as in Leviathan et al. 2023, "Fast Inference from Transformers via Speculative Decoding" (arXiv:2211.17192):

    p   the target's distribution over the next token, after temperature, top-k and top-p
    q   the distribution that the draft token was drawn from, after the same settings
    x   the draft token, x ~ q
    u   a uniform draw from [0, 1)
    α   the acceptance rate of a position, Σ min(p, q)

Each deviation from the paper is marked in the code. All functions take and return numpy arrays and do not modify their
arguments. A function that draws takes an open stream of `specviz.core.noise`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from specviz.core.errors import ScoresError
from specviz.core.guarantee import Guarantee
from specviz.core.settings import Rule, Sampling

Floats = NDArray[np.float64]
Logits = NDArray[np.float32]
Ids = NDArray[np.int64]


_CERTAIN = np.ones(1)
_CERTAIN.setflags(write=False)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One probability distribution over a vocabulary, full or sparse.

    Attributes:
        probs: (V,) for a full row, (n,) for a sparse one; sums to 1.
        ids: (n,) the token ids that `probs` belongs to, ascending; None for a full row. Other tokens have
            probability 0.
    """

    probs: Floats
    ids: Ids | None = None

    @classmethod
    def one_hot(cls, token_id: int) -> Row:
        """The distribution of a token that was chosen, not drawn (greedy, n-gram lookup)."""
        return cls(_CERTAIN, np.array([token_id], dtype=np.int64))

    def prob(self, token_id: int) -> float:
        """Probability of one token; 0.0 outside the row."""
        if self.ids is None:
            return float(self.probs[token_id]) if 0 <= token_id < len(self.probs) else 0.0
        at = int(self.ids.searchsorted(token_id)) if len(self.ids) > 1 else 0
        return float(self.probs[at]) if at < len(self.ids) and self.ids[at] == token_id else 0.0

    def probs_of(self, token_ids: Sequence[int]) -> list[float]:
        """Probability of each of several tokens, as `prob` gives it."""
        found: list[float] = self.at(np.array(token_ids, dtype=np.int64)).tolist()
        return found

    def at(self, token_ids: Ids) -> Floats:
        """(n,) probability of each of n tokens, as `prob` gives it."""
        at = token_ids if self.ids is None else self.ids.searchsorted(token_ids)
        inside = at.view(np.uint64) < len(self.probs)  # a negative id is a very large one
        found = self.probs[np.where(inside, at, 0)] if not inside.all() else self.probs[at]
        if self.ids is not None:
            inside &= self.ids[np.where(inside, at, 0)] == token_ids
        return found if inside.all() else np.where(inside, found, 0.0)

    def best(self) -> int:
        """The most probable token, the lowest id of equal ones."""
        at = int(self.probs.argmax())
        return at if self.ids is None else int(self.ids[at])

    def dense(self, vocab_size: int) -> Floats:
        """The row as a (vocab_size,) array. Ids at or beyond `vocab_size` must have probability 0."""
        if self.ids is None and len(self.probs) == vocab_size:
            return self.probs
        full = np.zeros(vocab_size)
        if self.ids is None:
            n = min(vocab_size, len(self.probs))
            full[:n] = self.probs[:n]
        else:
            full[self.ids] = self.probs
        return full


def row_of(logits: Logits, sampling: Sampling, best: int | None = None) -> Row:
    """Apply temperature, then top-k, then top-p.

    Temperature comes first, so that at 0 every rule sees a one-hot row: "greedy" can never keep a token that is not
    the argmax. Equal logits at temperature 0 give the lowest id. top-k keeps exactly k tokens (ties by id).

    Args:
        logits: (V,) in nats, any offset; -inf is allowed, at least one finite.
        sampling: temperature ≥ 0; top_k 0 and top_p 1.0 mean "off".
        best: `most_probable(logits)`, where it is known.

    Returns:
        A full row; a sparse one at temperature 0, with top-k and with top-p.

    Raises:
        ScoresError: a logit is nan or +inf, or none is finite.
    """
    best = most_probable(logits) if best is None else best
    if sampling.temperature == 0:
        return Row.one_hot(best)
    top = float(logits[best])
    if 0 < sampling.top_k < len(logits):
        ids = _best(logits, top, sampling.top_k)
        probs = _weights(logits[ids], top, sampling.temperature)
        probs /= probs.sum()
    else:
        weights = _weights(logits, top, sampling.temperature)
        total = weights.sum()
        if sampling.top_p == 1.0:
            return Row(np.divide(weights, total, out=weights))
        # The margin is far above rounding: every token behind such a head has more than top_p in front of it.
        wanted = (sampling.top_p + 1e-9) * total
        ids = _best_first(logits, _near(logits, top, lambda near: bool(weights[near].sum() > wanted)))
        probs = weights[ids] / total
    if sampling.top_p < 1.0:
        # The token that crosses top_p is kept, so at least one always is.
        kept = np.cumsum(probs) - probs < sampling.top_p
        ids, probs = ids[kept], probs[kept]
        probs /= probs.sum()
    order = ids.argsort()
    return Row(probs[order], ids[order])


def to_probs(logits: Logits, sampling: Sampling) -> Floats:
    """`row_of` as a (V,) array. Raises: as `row_of` does."""
    return row_of(logits, sampling).dense(len(logits))


def most_probable(logits: Logits) -> int:
    """Id of the largest logit of a (V,) row, the lowest of equal ones.

    Raises:
        ScoresError: a logit is nan or +inf, or none is finite.
    """
    best = int(logits.argmax())  # that of a nan, if there is one
    top = float(logits[best])
    if math.isfinite(top):
        return best
    raise ScoresError("a logit is nan" if math.isnan(top) else "a logit is +inf" if top > 0 else "every logit is -inf")


def _weights(logits: Logits, top: float, temperature: float) -> Floats:
    """exp((logit - top) / temperature)."""
    scaled = logits.astype(np.float64)
    scaled -= top
    with np.errstate(over="ignore"):
        # Close to temperature 0 all scaled logits but the best overflow to -inf, which is the right limit.
        scaled /= temperature
    return np.exp(scaled, out=scaled)


def _near(logits: Logits, top: float, enough: Callable[[Ids], bool]) -> Ids:
    """Ids of all logits above some value, ascending: as many as are `enough`, or all but those of -inf.

    Sorting a whole vocabulary takes several milliseconds, so only what is near the best logit is sorted.
    """
    near = np.empty(0, dtype=np.int64)
    for spread in _SPREADS:
        near = np.flatnonzero(logits > top - spread)
        if enough(near):
            break
    return near


def _best_first(logits: Logits, ids: Ids) -> Ids:
    """Ascending ids by descending logit, ties by id. Sorted by probability, the argmax could come behind an equal."""
    return ids[np.argsort(-logits[ids], kind="stable")]


def _best(logits: Logits, top: float, n: int) -> Ids:
    """Ids of the n largest logits, best first, ties by id; logits of -inf are left out."""
    near = _near(logits, top, lambda near: len(near) >= n)
    values = logits[near]
    if len(near) > n:
        near = near[values >= np.partition(values, len(values) - n)[len(values) - n]]
    return _best_first(logits, near)[:n]


#: Distances from the best logit, in nats, within which the largest ones are looked for.
_SPREADS = (6.0, 9.0, 12.0, 16.0, 24.0, math.inf)


def draw(probs: Floats, rng: np.random.Generator) -> int:
    """Draw one index with the given probabilities, by inverting the cumulative sum.

    Args:
        probs: (V,) non-negative; need not be normalised.
    """
    # Sums of blocks first: a cumulative sum adds number by number, a sum adds several numbers at a time.
    sums = np.add.reduceat(probs, np.arange(0, len(probs), _BLOCK))
    cumulative = sums.cumsum()
    wanted = rng.random() * cumulative[-1]
    block = _found(cumulative, wanted, sums)
    before = cumulative[block - 1] if block else 0.0
    part = probs[block * _BLOCK : (block + 1) * _BLOCK]
    return block * _BLOCK + _found(part.cumsum(), wanted - before, part)


def _found(cumulative: Floats, wanted: float, probs: Floats) -> int:
    at = int(cumulative.searchsorted(wanted, side="right"))
    # Rounding can put the draw past the end; the last one with any probability takes it.
    return at if at < len(probs) else int(np.flatnonzero(probs)[-1])


#: Number of probabilities that `draw` adds up in one sum.
_BLOCK = 256


def draw_row(row: Row, rng: np.random.Generator) -> int:
    """Draw a token from a row, with one number of the stream whatever the row is."""
    if row.ids is None:
        return draw(row.probs, rng)
    if len(row.ids) == 1:
        rng.random()
        return int(row.ids[0])
    return int(row.ids[draw(row.probs, rng)])


def draw_from(logits: Logits, sampling: Sampling, rng: np.random.Generator) -> tuple[int, Row]:
    """Draw a draft token together with the q that it was drawn from.

    One function returns both, so that the q that the rule uses is always the q that the token was sampled from.
    """
    row = row_of(logits, sampling)
    return draw_row(row, rng), row


def expected_acceptance(logits: Logits, q: Row) -> float:
    """The draft's estimate of the probability that the target keeps a token drawn from q.

    The estimate is the probability of the draft's best token. If the sampling settings leave a single token
    (temperature 0, top-k 1), that would always be 1; then it is the probability before the settings.

    It must not depend on the token that is then drawn: see `specviz.drafters.model`.

    Args:
        logits: (V,) the draft's. q: the same row after the sampling settings.

    Returns:
        From 0 to 1.
    """
    best = float(q.probs.max())
    return best if best < 1.0 else float(np.exp(logits.max() - summarise(logits, entropy=False).log_normaliser))


def acceptance(p: float, q: float) -> float:
    """The probability of keeping a token, min(1, p/q) (Leviathan et al. 2023, section 2.3).

    A token with q = 0 cannot have been drawn; its value is 1 by convention.

    Args:
        p, q: target and draft probability of the token.
    """
    return p / q if q > p else 1.0


def residual(p: Row, q: Row) -> Row:
    """The distribution that replaces a rejected token: norm(max(0, p - q)) (Leviathan et al. 2023, section 2.3).

    When p == q nothing is rejected and the residual is empty; it falls back to p, so that a rejection caused by
    rounding still draws from the target.
    """
    left = _surplus(p, q)
    return Row(left.probs / left.probs.sum(), left.ids)


def _surplus(p: Row, q: Row) -> Row:
    """`residual` before it is normalised, as much as a draw needs."""
    if p.ids is not None:
        left = np.maximum(p.probs - q.at(p.ids), 0.0)
    else:
        left = p.probs.copy()
        # Ids beyond p's vocabulary are padding of the draft.
        n = min(len(left), len(q.probs)) if q.ids is None else int(q.ids.searchsorted(len(left)))
        both = slice(n) if q.ids is None else q.ids[:n]
        left[both] = np.maximum(left[both] - q.probs[:n], 0.0)
    return Row(left, p.ids) if np.add.reduce(left) > 0 else p


def overlap(p: Row, q: Row) -> float:
    """α = Σ min(p, q), the probability that a token drawn from q is kept (Leviathan et al. 2023, theorem 3.5).

    Ids beyond the vocabulary of one row have probability 0 there.
    """
    if p.ids is None and q.ids is None:
        n = min(len(p.probs), len(q.probs))
        return min(1.0, float(np.minimum(p.probs[:n], q.probs[:n]).sum()))
    few, many = (q, p) if p.ids is None or (q.ids is not None and len(q.ids) < len(p.ids)) else (p, q)
    assert few.ids is not None
    if len(few.ids) == 1:
        return min(float(few.probs[0]), many.prob(int(few.ids[0])))
    return min(1.0, float(np.minimum(few.probs, many.at(few.ids)).sum()))


Status = Literal["accepted", "rejected", "ignored", "bonus"]


@dataclass(frozen=True, slots=True)
class TokenTest:
    """Whether a rule keeps one draft token.

    Attributes:
        kept: whether the token is kept.
        p, q: its probabilities.
        weight: the probability of keeping this token, before u was drawn.
        u: the uniform draw that decided; None if the rule draws none.
        own: the target's own token at this position, if the rule compares the draft token with it; else None.
    """

    kept: bool
    p: float
    q: float
    weight: float
    u: float | None = None
    own: int | None = None


def token_test(rule: Rule, p: Row, x: int, q: Row, rng: np.random.Generator) -> TokenTest:
    """Decide whether draft token x is kept. `replacement` draws the token in place of a rejected one.

    probabilistic: modified rejection sampling (Leviathan et al. 2023, algorithm 1). Lossless; keeps Σ min(p, q).
    deterministic: keep x if the target draws the same token. Lossless; keeps Σ p·q.
    greedy: keep x if it is the target's argmax. Lossless at temperature 0 only.
    threshold: keep x when p(x) ≥ τ. Lossy.

    Args:
        p: the target's distribution. q: the distribution that x was drawn from.
        rng: the round's target stream.

    Raises:
        ValueError: q(x) is 0, so x was not drawn from q.
    """
    px, qx = p.prob(x), q.prob(x)
    match rule.name:
        case "probabilistic":
            if qx <= 0:
                raise ValueError(f"draft token {x} has q(x) = {qx}: it was not drawn from the q that came with it")
            weight, u = acceptance(px, qx), rng.random()
            return TokenTest(u < weight, px, qx, weight, u)
        case "deterministic":
            own = draw_row(p, rng)
            return TokenTest(own == x, px, qx, px, own=own)
        case "greedy":
            own = p.best()
            return TokenTest(own == x, px, qx, float(own == x), own=own)
        case "threshold":
            kept = px >= rule.tau
            return TokenTest(kept, px, qx, float(kept))


def replacement(rule: Rule, p: Row, q: Row, refused: TokenTest, rng: np.random.Generator) -> int:
    """The token in place of a rejected one: the target's own if the rule has it already, else a draw.

    The draw is from the residual under `probabilistic`, and from p under `threshold`.
    """
    if refused.own is not None:
        return refused.own
    if p.ids is not None and len(p.ids) == 1:
        return int(p.ids[0])
    return draw_row(_surplus(p, q) if rule.name == "probabilistic" else p, rng)


def bonus(p: Row, rule: Rule, rng: np.random.Generator) -> int:
    """The extra token of a fully accepted round, from the target's own distribution.

    Under `greedy` it is the argmax: a sampled bonus would mix greedy and sampled tokens in one text.
    """
    return p.best() if rule.name == "greedy" else draw_row(p, rng)


def draw_shared(p: Row, rule: Rule, rng: np.random.Generator) -> int:
    """The token of plain decoding without a drafter: the argmax of log p + Gumbel noise, which is a draw from p.

    The noise of token x is computed from the x-th number of the stream, so a vocabulary with padding draws the same
    token as one without. A drafter that uses the same noise with its own q often draws the same token (Daliri, Musco
    and Suresh 2024, arXiv:2408.07978). Under `greedy` it is the argmax of p.

    Args:
        rng: the shared stream of the position.
    """
    probs = p.probs
    if rule.name == "greedy" or len(probs) == 1:
        return p.best()
    u = rng.random(len(probs)) if p.ids is None else rng.random(int(p.ids[-1]) + 1)[p.ids]
    # argmax(log p + G) with G = -log(E), E = -log(1 - u), is argmin(E / p): an exponential race. As E >= u, only
    # tokens whose u / p is below the E / p of the most probable one can win. The margin is for rounding.
    best = int(probs.argmax())
    early = np.flatnonzero(u <= probs * (-np.log1p(-u[best]) / probs[best] * (1 + 1e-9)))
    early = early[probs[early] > 0]
    at = int(early[np.argmin(-np.log1p(-u[early]) / probs[early])])
    return at if p.ids is None else int(p.ids[at])


@dataclass(frozen=True, slots=True)
class RowSummary:
    """Recorded figures of a row of logits, at temperature 1 and before any truncation.

    Attributes:
        log_normaliser: ln Σ exp(logit), so that `logits[i] - log_normaliser` is a log-probability.
        entropy_bits: Shannon entropy; None when it was not asked for.
    """

    log_normaliser: float
    entropy_bits: float | None


def summarise(logits: Logits, best: int | None = None, *, entropy: bool = True) -> RowSummary:
    """Normaliser and entropy of a (V,) row.

    Single precision is enough for values that are only shown (errors near 1e-6), and takes a third of the time. The
    probabilities that the rules use are computed in double precision by `row_of`.

    Args:
        best: `most_probable(logits)`, where it is known.
    """
    top = float(logits[logits.argmax() if best is None else best])
    # The logits of most models are far from the ends of exp's range, which saves a pass over the row.
    offset = 0.0 if abs(top) < 40 else top
    weights = np.exp(logits - np.float32(offset) if offset else logits)
    total = float(np.add.reduce(weights))
    normaliser = offset + math.log(total)
    if not entropy:
        return RowSummary(normaliser, None)
    with np.errstate(invalid="ignore"):
        mean = float(weights @ logits) / total
    if math.isnan(mean):  # 0 times -inf
        possible = weights > 0
        mean = float(weights[possible] @ logits[possible]) / total
    return RowSummary(normaliser, max(0.0, (normaliser - mean) / math.log(2.0)))


def top_ids(logits: Logits, n: int) -> list[int]:
    """Ids of the n largest logits of a (V,) row, best first, ties by id; logits of -inf are left out."""
    best: list[int] = _best(logits, float(logits.max()), n).tolist()
    return best


def promise(rule: Rule, sampling: Sampling) -> Guarantee:
    """The guarantee of a rule when full distributions are known (docs/architecture.md, "The maths")."""
    match rule.name:
        case "probabilistic":
            return Guarantee("EXACT", "Rejection sampling: every token is distributed as the target's own.")
        case "deterministic":
            return Guarantee("EXACT", "The target draws every token itself; drafts only save calls.")
        case "greedy" if sampling.temperature == 0:
            return Guarantee("EXACT", "Temperature 0: every token is the target's most probable one.")
        case "greedy":
            return Guarantee(
                "LOSSY",
                f"Always the most probable token, though temperature {sampling.temperature:g} asks for samples.",
            )
        case "threshold":
            return Guarantee("LOSSY", f"Keeps any draft token with target probability of at least {rule.tau:g}.")
