"""How far a student is from the target, and the gradient of that: `specviz.distill.loss` in PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor

from specviz.distill.samples import SOFT_TEMPERATURES


@torch.no_grad()
def loss_and_gradient(z: Tensor, top: Tensor, logp: Tensor, sums: Tensor, tv: float) -> tuple[Tensor, Tensor]:
    """Forward KL at temperature 1 and 1 - Σ min(p, q) at the soft temperatures: their means, and d loss / d z.

    Written out by hand: one exponential per logit and temperature, where autograd keeps and makes many more.

    Args:
        z: (n, V) the student's logits, overwritten. top: (n, 64) draft ids of the target's most probable tokens, -1
            for those that the student lacks. logp, sums: see `specviz.distill.samples.Rows`.
        tv: weight of the acceptance terms, 1 - tv that of KL.

    Returns:
        (KL, Σ min at 0.8, Σ min at 0.3) means; the gradient (n, V) of the mean loss.
    """
    kept, index = top >= 0, top.clamp(min=0).long()
    n = len(z)
    z -= z.amax(-1, keepdim=True)
    one = z.exp()
    total = one.sum(-1, keepdim=True)
    p = logp.exp() * kept
    kl = (p * (logp - z.gather(1, index) + total.log())).sum(-1)
    gradient = one.mul_((1 - tv) * p.sum(-1, keepdim=True) / total / n)
    sparse = -(1 - tv) / n * p
    shares = []
    for i, t in enumerate(SOFT_TEMPERATURES):
        soft = (z / t).exp_()
        total = soft.sum(-1, keepdim=True)
        p, q = (logp / t - sums[:, i : i + 1]).exp() * kept, soft.gather(1, index) / total * kept
        shares.append(torch.minimum(p, q).sum(-1).mean())
        low = q * (q < p)  # where more of q would be accepted
        weight = tv / len(SOFT_TEMPERATURES) / t / n
        gradient.addcmul_(soft, weight * low.sum(-1, keepdim=True) / total)
        sparse = sparse - weight * low
    gradient.scatter_add_(1, index, sparse)
    return torch.stack([kl.mean(), *shares]), gradient
