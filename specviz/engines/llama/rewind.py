"""Whether a model's cache can be rewound, decided by what it does.

Speculation removes rejected tokens in every round. A recurrent state or a rotating window has overwritten the earlier
state, and an architecture's name does not say what the library's cache for it does.
"""

from __future__ import annotations

import numpy as np

from specviz.core.errors import RunError, UnsupportedModelError
from specviz.core.ports import Scorer

_BLOCK = 4
_REMEDY = "Speculation needs a model with plain attention in every layer, such as Llama or Qwen2.5."


def check_rewindable(scorer: Scorer, name: str, vocab_size: int, window: int = 0) -> None:
    """Score a block, rewind, score another one, rewind, and score the first again: equal passes must be equal bits.

    Args:
        scorer: an empty one; empty again at the end. Its context holds `window` + 16 tokens.
        name: of the model, for the message.
        vocab_size: of the model.
        window: of sliding attention, in tokens; the check is made behind its end too. 0 for none.

    Raises:
        UnsupportedModelError: the cache cannot be rewound.
    """
    for length in {_BLOCK, window + _BLOCK} if window else {_BLOCK}:
        ids = [(7 * i + 11) % vocab_size for i in range(length + 2 * _BLOCK)]
        context, one, other = ids[:length], ids[length : length + _BLOCK], ids[length + _BLOCK :]
        try:
            scorer.score(context, 1)
            first = np.array(scorer.score([*context, *one], _BLOCK))
            scorer.score([*context, *other], _BLOCK)
            again = scorer.score([*context, *one], _BLOCK)
            equal = np.array_equal(first, again)
        except RunError as exc:
            raise UnsupportedModelError(f"{name} keeps a state that cannot be rewound: {exc.message}", _REMEDY) from exc
        if np.isnan(first).any():
            raise UnsupportedModelError(
                f"{name} gives scores that are no numbers: its weights are damaged.", "Fetch it again."
            )
        if not equal:
            raise UnsupportedModelError(
                f"{name} keeps a state that cannot be rewound: the same block gave other scores after "
                f"{length} tokens were kept and {_BLOCK} removed.",
                _REMEDY,
            )
        scorer.reset()
