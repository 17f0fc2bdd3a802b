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
from collections.abc import Sequence
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
        return cls(np.ones(1), np.array([token_id], dtype=np.int64))

    def prob(self, token_id: int) -> float:
        """Probability of one token; 0.0 outside the row."""
        if self.ids is None:
            return float(self.probs[token_id]) if 0 <= token_id < len(self.probs) else 0.0
        at = int(self.ids.searchsorted(token_id))
        return float(self.probs[at]) if at < len(self.ids) and self.ids[at] == token_id else 0.0

    def probs_of(self, token_ids: Sequence[int]) -> list[float]:
        """Probability of each of several tokens, as `prob` gives it."""
        wanted = np.array(token_ids, dtype=np.int64)
        at = wanted if self.ids is None else self.ids.searchsorted(wanted)
        inside = (at >= 0) & (at < len(self.probs))
        at = np.where(inside, at, 0)
        if self.ids is not None:
            inside &= self.ids[at] == wanted
        found: list[float] = np.where(inside, self.probs[at], 0.0).tolist()
        return found

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


def to_probs(logits: Logits, sampling: Sampling) -> Floats:
    """Apply temperature, then top-k, then top-p.

    Temperature comes first, so that at 0 every rule sees a one-hot row: "greedy" can never keep a token that is
    not the argmax. Equal logits at temperature 0 give the lowest id. top-k keeps exactly k tokens (ties by id).

    Args:
        logits: (V,) in nats, any offset; -inf is allowed, at least one finite.
        sampling: temperature ≥ 0; top_k 0 and top_p 1.0 mean "off".

    Returns:
        (V,) float64, sums to 1.

    Raises:
        ScoresError: a logit is nan or +inf, or none is finite.
    """
    _check(logits)
    if sampling.temperature == 0:
        row = np.zeros(len(logits))
        row[int(np.argmax(logits))] = 1.0
        return row
    scaled = logits.astype(np.float64)
    scaled -= scaled.max()
    with np.errstate(over="ignore"):
        # Close to temperature 0 all scaled logits but the best overflow to -inf, which is the right limit.
        scaled /= sampling.temperature
    probs = np.exp(scaled, out=scaled)
    if 0 < sampling.top_k < len(probs):
        probs = _keep_only(probs, _best_first(logits)[: sampling.top_k])
    probs /= probs.sum()
    if sampling.top_p < 1.0:
        order = _best_first(logits)
        before = np.cumsum(probs[order]) - probs[order]
        # The token that crosses top_p is kept, so at least one always is.
        probs = _keep_only(probs, order[before < sampling.top_p])
        probs /= probs.sum()
    return probs


def _best_first(logits: Logits) -> Ids:
    """Ids by descending logit, ties by id. Sorting by probability could drop the argmax when two values round equal."""
    return np.argsort(-logits, kind="stable")


def _check(logits: Logits) -> None:
    top = float(logits.max())
    if math.isfinite(top):
        return
    raise ScoresError("a logit is nan" if math.isnan(top) else "a logit is +inf" if top > 0 else "every logit is -inf")


def _keep_only(probs: Floats, kept: Ids) -> Floats:
    out = np.zeros_like(probs)
    out[kept] = probs[kept]
    return out


def draw(probs: Floats, rng: np.random.Generator) -> int:
    """Draw one index with the given probabilities, by inverting the cumulative sum.

    Args:
        probs: (V,) non-negative; need not be normalised to the last bit.
    """
    cumulative = np.cumsum(probs)
    at = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
    # Rounding can put the draw past the end; the last token with any probability takes it.
    return at if at < len(probs) else int(np.flatnonzero(probs)[-1])


def row_of(logits: Logits, sampling: Sampling) -> Row:
    """The q that a draft token is drawn from: one-hot at temperature 0, else the full row of `to_probs`."""
    if sampling.temperature == 0:
        _check(logits)
        return Row.one_hot(int(np.argmax(logits)))
    return Row(to_probs(logits, sampling))


def draw_row(row: Row, rng: np.random.Generator) -> int:
    """Draw a token from a row; a row of one token needs no randomness."""
    if row.ids is None:
        return draw(row.probs, rng)
    return int(row.ids[0 if len(row.ids) == 1 else draw(row.probs, rng)])


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
    return best if best < 1.0 else float(np.exp(logits.max() - summarise(logits).log_normaliser))


def acceptance(p: Floats, q: Floats) -> Floats:
    """The probability of keeping each token, min(1, p/q) (Leviathan et al. 2023, section 2.3).

    A token with q = 0 cannot have been drawn; its value is 1 by convention.

    Args:
        p: (V,) target. q: (V,) draft.
    """
    ratio = np.ones_like(p)
    return np.divide(p, q, out=ratio, where=q > p)


def residual(p: Floats, q: Floats) -> Floats:
    """The distribution that replaces a rejected token: norm(max(0, p - q)) (Leviathan et al. 2023, section 2.3).

    When p == q nothing is rejected and the residual is empty; it falls back to p, so that a rejection caused by
    rounding still draws from the target.
    """
    left = np.maximum(p - q, 0.0)
    total = left.sum()
    return left / total if total > 0 else p.copy()


def overlap(p: Floats, q: Row) -> float:
    """α = Σ min(p, q), the probability that a token drawn from q is kept (Leviathan et al. 2023, theorem 3.5).

    Args:
        p: (V,) target. q: draft; ids beyond p's vocabulary are never kept.
    """
    if q.ids is None:
        n = min(len(p), len(q.probs))
        shared = np.minimum(p[:n], q.probs[:n])
    else:
        n = int(np.searchsorted(q.ids, len(p)))
        shared = np.minimum(p[q.ids[:n]], q.probs[:n])
    return min(1.0, float(shared.sum()))


Status = Literal["accepted", "rejected", "ignored", "bonus"]


@dataclass(frozen=True, slots=True)
class TokenTest:
    """Whether a rule keeps one draft token.

    Attributes:
        kept: whether the token is kept.
        weight: the probability of keeping this token, before u was drawn.
        u: the uniform draw that decided; None if the rule draws none.
        own: the target's own token at this position, if the rule compares the draft token with it; else None.
    """

    kept: bool
    weight: float
    u: float | None = None
    own: int | None = None


def token_test(rule: Rule, p: Floats, x: int, q: Row, rng: np.random.Generator) -> TokenTest:
    """Decide whether draft token x is kept. `replacement` draws the token in place of a rejected one.

    probabilistic: modified rejection sampling (Leviathan et al. 2023, algorithm 1). Lossless; keeps Σ min(p, q).
    deterministic: keep x if the target draws the same token. Lossless; keeps Σ p·q.
    greedy: keep x if it is the target's argmax. Lossless at temperature 0 only.
    threshold: keep x when p(x) ≥ τ. Lossy.

    Args:
        p: (V,) the target's distribution. q: the distribution that x was drawn from.
        rng: the round's target stream.

    Raises:
        ValueError: q(x) is 0, so x was not drawn from q.
    """
    match rule.name:
        case "probabilistic":
            qx = q.prob(x)
            if qx <= 0:
                raise ValueError(f"draft token {x} has q(x) = {qx}: it was not drawn from the q that came with it")
            weight = float(acceptance(p[x : x + 1], np.array([qx]))[0])
            u = float(rng.random())
            return TokenTest(u < weight, weight, u)
        case "deterministic":
            own = draw(p, rng)
            return TokenTest(own == x, float(p[x]), own=own)
        case "greedy":
            own = int(np.argmax(p))
            return TokenTest(own == x, float(own == x), own=own)
        case "threshold":
            kept = float(p[x]) >= rule.tau
            return TokenTest(kept, float(kept))


def replacement(rule: Rule, p: Floats, q: Row, refused: TokenTest, rng: np.random.Generator) -> int:
    """The token in place of a rejected one: the target's own if the rule has it already, else a draw.

    The draw is from the residual under `probabilistic`, and from p under `threshold`.
    """
    if refused.own is not None:
        return refused.own
    return draw(residual(p, q.dense(len(p))) if rule.name == "probabilistic" else p, rng)


def bonus(p: Floats, rule: Rule, rng: np.random.Generator) -> int:
    """The extra token of a fully accepted round, from the target's own distribution.

    Under `greedy` it is the argmax: a sampled bonus would mix greedy and sampled tokens in one text.
    """
    return int(np.argmax(p)) if rule.name == "greedy" else draw(p, rng)


def draw_shared(p: Floats, rule: Rule, rng: np.random.Generator) -> int:
    """The token of plain decoding without a drafter: the argmax of log p + Gumbel noise, which is a draw from p.

    The noise of token x is computed from the x-th number of the stream, so a vocabulary with padding draws the same
    token as one without. A drafter that uses the same noise with its own q often draws the same token (Daliri, Musco
    and Suresh 2024, arXiv:2408.07978). Under `greedy` it is the argmax of p.

    Args:
        p: (V,) non-negative. rng: the shared stream of the position.
    """
    possible = np.flatnonzero(p)
    if rule.name == "greedy" or len(possible) == 1:
        return int(np.argmax(p))
    # argmax(log p + G) with G = -log(E) is argmin(E / p): an exponential race.
    waits = -np.log1p(-rng.random(len(p))[possible])
    return int(possible[np.argmin(waits / p[possible])])


@dataclass(frozen=True, slots=True)
class RowSummary:
    """Recorded figures of a row of logits, at temperature 1 and before any truncation.

    Attributes:
        log_normaliser: ln Σ exp(logit), so that `logits[i] - log_normaliser` is a log-probability.
        entropy_bits: Shannon entropy.
    """

    log_normaliser: float
    entropy_bits: float


# exp underflows to 0 far above this value. It avoids 0 · -inf in the entropy.
_FLOOR = np.float32(-1e4)


def summarise(logits: Logits) -> RowSummary:
    """Normaliser and entropy of a (V,) row in one pass.

    Single precision is enough for values that are only shown (errors near 1e-6), and takes a third of the time. The
    probabilities that the rules use are computed in double precision by `to_probs`.
    """
    top = logits.max()
    shifted = np.maximum(logits - top, _FLOOR)
    weights = np.exp(shifted)
    total = float(weights.sum(dtype=np.float64))
    mean_shifted = float(np.dot(weights, shifted)) / total
    log_total = float(np.log(total))
    return RowSummary(float(top) + log_total, max(0.0, (log_total - mean_shifted) / float(np.log(2.0))))


def top_ids(logits: Logits, n: int) -> list[int]:
    """Ids of the n largest logits of a (V,) row, best first, ties by id; logits of -inf are left out."""
    # Sorting the whole vocabulary would take longer than the rule itself, so only logits near the maximum are sorted.
    near = np.flatnonzero(logits > logits.max() - 12)
    if len(near) < n:
        near = np.flatnonzero(logits > -np.inf)
    if len(near) > 8 * n:
        near = near[np.argpartition(-logits[near], n - 1)[: 2 * n]]
    return [int(i) for i in near[np.lexsort((near, -logits[near]))][:n]]


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
