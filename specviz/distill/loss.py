"""The loss: how far the student's rows are from the target's, of which only the most probable tokens are kept.

Distillation for speculative decoding after DistillSpec (Zhou et al. 2023, arXiv:2310.08461): the target writes the
texts, and the student is fitted to the target's distributions: first by KL divergence, in the end by the acceptance
rate itself, Σ min(p, q) = 1 - TV(p, q). DistillSpec also learns from texts that the student draws. That is left out
here, because the target would have to score those at every step.

The gradients are written out. Each term then needs one exponential per logit, where automatic differentiation computes
two or three and stores them: 1,800 rows of 8,192 logits take 1.2 s on two cores instead of 2.4 s.

Letters: p is the target's probability, q the student's; both at temperature T, p_T ∝ p^(1/T).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from specviz.distill.samples import SOFT_TEMPERATURES

#: Share of the training during which the weight moves from KL to TV.
MOVE = (0.3, 0.8)
#: The largest weight of TV. The rest of KL keeps the tails of the distribution fitted.
TV_MOST = 0.9


class Term(NamedTuple):
    """One loss of M rows, and its gradient with respect to the logits.

    Attributes:
        loss: (M,)
        dense: (M, V) part of the gradient.
        sparse: (M, N) the rest of the gradient, at the kept tokens.
    """

    loss: Any
    dense: Any
    sparse: Any


def forward_kl(logits: Any, ids: Any, logprobs: Any) -> Term:
    """Σ p·ln(p/q) at temperature 1, over the kept tokens that the student has. The other tokens add a constant.

    Args:
        logits: (M, V) of the student.
        ids: (M, N) draft ids of the target's most probable tokens; any id where the student has none.
        logprobs: (M, N) the target's natural log-probabilities at temperature 1; `FLOOR` where the student has none.

    Returns:
        In nats. Negative where much of p is on tokens that the student does not have.
    """
    import mlx.core as mx

    weights, total, known = _softmax(logits, ids, 1.0)
    p = mx.exp(logprobs)
    loss = mx.sum(p * (logprobs - known + mx.log(total)), axis=-1)
    return Term(loss, weights * (mx.sum(p, axis=-1, keepdims=True) / total), -p)


def total_variation(logits: Any, ids: Any, logprobs: Any, log_sums: Any, temperature: float) -> Term:
    """1 - Σ min(p_T, q_T) over the kept tokens: the rejection rate at temperature T, or a little more.

    Args:
        logits, ids, logprobs: see `forward_kl`.
        log_sums: (M,) ln Σ exp(logprob / T) over the target's whole vocabulary.

    Returns:
        From 0 to 1.
    """
    import mlx.core as mx

    weights, total, known = _softmax(logits, ids, temperature)
    p = mx.exp(logprobs / temperature - log_sums[:, None])
    q = mx.exp(known) / total
    missing = mx.where(q < p, q, 0) / temperature  # where a larger q is accepted more often
    dense = weights * (mx.sum(missing, axis=-1, keepdims=True) / total)
    return Term(1 - mx.sum(mx.minimum(p, q), axis=-1), dense, -missing)


def _softmax(logits: Any, ids: Any, temperature: float) -> tuple[Any, Any, Any]:
    """exp((logit - maximum) / T), (M, V); its sum, (M, 1); the exponents at the kept tokens, (M, N)."""
    import mlx.core as mx

    scaled = (logits - mx.max(logits, axis=-1, keepdims=True)) / temperature
    weights = mx.exp(scaled)
    return weights, mx.sum(weights, axis=-1, keepdims=True), mx.take_along_axis(scaled, ids, axis=-1)


def tv_weight(progress: float) -> float:
    """The weight of TV when this share of the training is over; KL has the rest.

    KL comes first: where q is near 0, so is the gradient of min(p, q) = q, and TV teaches little.
    """
    begin, end = MOVE
    return TV_MOST * min(1.0, max(0.0, (progress - begin) / (end - begin)))


def mixed(logits: Any, ids: Any, logprobs: Any, log_sums: Any, weight: float) -> Any:
    """The loss of a batch: a scalar, the mean over its tokens.

    Args:
        log_sums: (M, len(SOFT_TEMPERATURES)).
        weight: of TV, see `tv_weight`. TV is the mean over `SOFT_TEMPERATURES`.
    """
    import mlx.core as mx

    def loss_and_gradient(logits: Any) -> tuple[Any, Any]:
        terms = [(1 - weight, forward_kl(logits, ids, logprobs))]
        if weight > 0:
            share = weight / len(SOFT_TEMPERATURES)
            for i, t in enumerate(SOFT_TEMPERATURES):
                terms.append((share, total_variation(logits, ids, logprobs, log_sums[:, i], t)))
        gradient = sum(share * term.dense for share, term in terms)
        rows = mx.arange(len(logits))[:, None]
        gradient = gradient.at[rows, ids].add(sum(share * term.sparse for share, term in terms))
        return mx.mean(sum(share * term.loss for share, term in terms)), gradient / len(logits)

    function: Any = mx.custom_function(loss_and_gradient)

    @function.vjp  # type: ignore[untyped-decorator]
    def _(primals: Any, cotangents: Any, outputs: Any) -> Any:
        return cotangents[0] * outputs[1]

    return function(logits)[0]
