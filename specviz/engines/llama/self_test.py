"""A tiny model with known logits: whether the library computes what it should on this machine.

The library's structures are bound by hand, and its kernels are chosen for the processor. A mistake in either gives
wrong numbers without an error.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from specviz.core.sampling import Logits
from specviz.engines.llama.handle import Handle
from specviz.engines.llama.scorer import LlamaScorer
from specviz.engines.llama.threads import Threads

FILE = Path(__file__).with_name("known.gguf")
IDS = (3, 1, 4, 1, 5, 9, 2, 6)
_TOKENS = 24
#: After `IDS`. `tests/engines/llama/test_self_test.py` computes them from the weights by numpy.
KNOWN = (
    0.52, 1.91, 1.04, -1.86, 1.94, 2.95, -0.24, -2.35, 0.19, 3.16, -0.47, -1.05,
    3.21, -4.55, 1.91, 2.78, 4.19, 1.80, 4.36, 3.47, 3.87, 2.08, -3.92, -4.76,
)  # fmt: skip
#: Activations are rounded to 8 bits in each product, in another order on another processor.
TOLERANCE = 0.3


def logits() -> Logits:
    """(24,) logits of the tiny model after `IDS`."""
    scorer = LlamaScorer(
        FILE.name, Handle(FILE), vocab_size=_TOKENS, width=_TOKENS, max_context=64, threads=Threads(fixed=1)
    )
    return np.array(scorer.score(IDS, 1)[0])


def wrong() -> float:
    """The largest difference from what is known."""
    return float(np.abs(logits() - np.array(KNOWN, np.float32)).max())
