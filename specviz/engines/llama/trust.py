"""Whether large passes of a model can be trusted, decided by what they give.

For passes of 32 tokens and more the library takes other kernels, and on some processors that for some number format is
wrong (Q4_1 in ik-llama-cpp-python 0.1.5 on AVX2: a third of the most probable tokens were those of single tokens).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from specviz.core.ports import Scorer
from specviz.core.sampling import Logits
from specviz.engines.llama.scorer import CHUNK, SMALL

_IDS = 48
#: Mean Kullback-Leibler divergence, in nats, between the rows behind a large pass and behind small ones. Sound formats
#: have less than 0.03.
_DIVERGED = 0.3


def trusted_chunk(make: Callable[[int], Scorer], vocab_size: int) -> int:
    """Ids per pass of a prefill: `CHUNK`, or `SMALL` for a model whose large passes are wrong.

    Args:
        make: a scorer by its ids per pass of a prefill.
        vocab_size: of the model.
    """
    ids = [(7 * i * i + 11) % vocab_size for i in range(_IDS + 4)]
    large, small = (np.array(make(chunk).score(ids, 4)) for chunk in (CHUNK, SMALL))
    return CHUNK if divergence(small, large) < _DIVERGED else SMALL


def divergence(expected: Logits, found: Logits) -> float:
    """Mean Kullback-Leibler divergence of rows of logits (rows, V), in nats."""
    log_p, log_q = (
        rows - np.logaddexp.reduce(rows, axis=-1, keepdims=True)
        for rows in (expected.astype(np.float64), found.astype(np.float64))
    )
    return float((np.exp(log_p) * (log_p - log_q)).sum(-1).mean())
