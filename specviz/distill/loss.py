"""How far a student's rows are from the target's, of which only the most probable tokens are known.

Distillation for speculative decoding after DistillSpec (Zhou et al. 2023, arXiv:2310.08461): the target writes the
texts, the student is fitted to the target's distributions, and what is fitted in the end is the acceptance rate
itself, Σ min(p, q) = 1 - TV(p, q). Their other half, texts drawn from the student, is left out here: those would
have to be scored by the target at every step.

Letters: p is the target's probability, q the student's; both at temperature T, p_T ∝ p^(1/T).
"""

from __future__ import annotations

from typing import Any

from specviz.distill.samples import SOFT_TEMPERATURES

#: Share of the training during which the weight moves from KL to TV.
MOVE = (0.3, 0.8)
#: The most that TV weighs: a rest of KL keeps the tails in place.
TV_MOST = 0.9


def forward_kl(logits: Any, ids: Any, logprobs: Any) -> Any:
    """Σ p·ln(p/q) at temperature 1 over the known tokens that the student has; the others' share is a constant.

    Args:
        logits: (M, V) the student's.
        ids: (M, N) draft ids of the target's most probable tokens; any id where the student has none.
        logprobs: (M, N) the target's natural log-probabilities at temperature 1; `FLOOR` where the student has none.

    Returns:
        (M,) nats. Below 0 where much of p lies on tokens that the student does not have.
    """
    import mlx.core as mx

    known = mx.take_along_axis(logits, ids, axis=-1) - mx.logsumexp(logits, axis=-1, keepdims=True)
    return mx.sum(mx.exp(logprobs) * (logprobs - known), axis=-1)


def total_variation(logits: Any, ids: Any, logprobs: Any, log_sums: Any, temperature: float) -> Any:
    """1 - Σ min(p_T, q_T) over the known tokens: the rejection rate at temperature T, or a little more.

    Args:
        logits, ids, logprobs: see `forward_kl`.
        log_sums: (M,) ln Σ exp(logprob / T) over the target's whole vocabulary.

    Returns:
        (M,) from 0 to 1.
    """
    import mlx.core as mx

    p = mx.exp(logprobs / temperature - log_sums[:, None])
    scaled = logits / temperature
    q = mx.exp(mx.take_along_axis(scaled, ids, axis=-1) - mx.logsumexp(scaled, axis=-1, keepdims=True))
    return 1 - mx.sum(mx.minimum(p, q), axis=-1)


def tv_weight(progress: float) -> float:
    """What TV weighs when this share of the training is over; KL weighs the rest.

    KL comes first: where a student has next to nothing of p, min(p, q) = q is flat, and TV teaches little.
    """
    begin, end = MOVE
    return TV_MOST * min(1.0, max(0.0, (progress - begin) / (end - begin)))


def mixed(logits: Any, ids: Any, logprobs: Any, log_sums: Any, weight: float) -> Any:
    """The loss of a batch: a scalar, the mean over its tokens.

    Args:
        log_sums: (M, len(SOFT_TEMPERATURES)).
        weight: of TV, see `tv_weight`; the mean over `SOFT_TEMPERATURES`.
    """
    total = (1 - weight) * forward_kl(logits, ids, logprobs)
    if weight > 0:
        tvs = [total_variation(logits, ids, logprobs, log_sums[:, i], t) for i, t in enumerate(SOFT_TEMPERATURES)]
        total = total + weight / len(tvs) * sum(tvs)
    return total.mean()
