"""Logits after the last tokens of a context, with a KV cache that follows the context.

Callers always pass the whole context. The cache keeps the longest prefix that it shares with the context and drops the
rest, so no caller has to remove rejected draft tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.errors import UnsupportedModelError
from specviz.core.ports import Scorer
from specviz.engines.limits import check_context, shared_prefix

CHUNK = 512  # ids per pass of a prefill: bounds memory, and how long a stop has to wait
# Up to this many ids in front of the wanted rows are computed in the same pass. A pass of their own would read all
# weights once more, which costs as much on a CPU as the head for about 90 rows.
_SPARE_ROWS = 64
_REWINDABLE = {"KVCache", "QuantizedKVCache"}


def empty_cache(model: Any) -> list[Any]:
    """A new cache for an mlx-lm module, one entry per layer."""
    from mlx_lm.models import cache

    make: Any = cache.make_prompt_cache  # has no return annotation
    return list(make(model))


def check_rewindable(cache: Sequence[Any], name: str) -> None:
    """Refuse a cache from which tokens cannot be removed.

    Speculation removes rejected tokens in every round. A rotating window or a recurrent state has overwritten the
    earlier state. ConcatenateKVCache is refused too: its `trim` moves the offset and keeps the keys.

    Args:
        cache: see `empty_cache`.
        name: of the model, for the message.

    Raises:
        UnsupportedModelError: naming the cache type.
    """
    for entry in cache:
        if type(entry).__name__ == "CacheList":
            check_rewindable(entry.caches, name)
        elif type(entry).__name__ not in _REWINDABLE:
            raise UnsupportedModelError(
                f"{name} keeps its context in a {type(entry).__name__}, which cannot be rewound.",
                "Speculation needs a model with plain attention in every layer, such as Llama or Qwen2.5.",
            )


class MlxScorer(Scorer):
    """One KV cache over a model's weights. Not for two threads, and only for the thread that loaded the model.

    Args:
        name: of the model, for messages.
        model: mlx-lm's `mlx.nn.Module`.
        vocab_size: number of real tokens. Larger ids are refused, and logits from there on are padding.
        max_context: tokens.
        inputs: (vocab_size,) the id that the model reads in place of each given id, for a model with a vocabulary of
            its own: its logits are over that vocabulary. None where the model reads the given ids.
    """

    def __init__(
        self, name: str, model: Any, vocab_size: int, max_context: int, inputs: NDArray[np.int32] | None = None
    ) -> None:
        """Begin with an empty cache."""
        self._name, self._model = name, model
        self._vocab_size, self._max_context, self._inputs = vocab_size, max_context, inputs
        self.reset()

    @property
    def cached(self) -> int:
        """How many ids the cache holds."""
        return len(self._ids)

    def reset(self) -> None:
        """Forget everything."""
        self._cache = empty_cache(self._model)
        self._ids: list[int] = []

    def score(self, token_ids: Sequence[int], rows: int) -> NDArray[np.float32]:
        """Logits after each of the last `rows` ids.

        Args:
            token_ids: the whole context.
            rows: from 1 to `len(token_ids)`.

        Returns:
            (rows, V) float32, as wide as the model's own vocabulary; the last row is the distribution over the next
            token. Padding is -inf.

        Raises:
            PromptError: no ids, more than the model's context, or an id outside its vocabulary.
            ValueError: `rows` is out of range.
        """
        ids = list(token_ids)
        check_context(ids, rows, name=self._name, vocab_size=self._vocab_size, max_context=self._max_context)
        kept = min(shared_prefix(self._ids, ids), len(ids) - rows)
        try:
            self._rewind(kept)
            self._feed(ids[kept : len(ids) - rows])
            logits = self._forward(ids[len(self._ids) :], rows)
        except BaseException:
            # Some layers may hold the new ids and others not: such a cache cannot be used.
            self.reset()
            raise
        if self._inputs is None:
            logits[:, self._vocab_size :] = -np.inf
        return logits

    def _rewind(self, length: int) -> None:
        surplus = len(self._ids) - length
        if surplus > 0:
            trimmed = {entry.trim(surplus) for entry in self._cache}
            if trimmed != {surplus}:
                raise RuntimeError(f"a cache that held {len(self._ids)} ids gave back {trimmed}, not {surplus}")
            del self._ids[length:]

    def _input(self, ids: list[int]) -> Any:
        """What the model reads, (1, n). The cache is compared by the ids that were given, not by these."""
        import mlx.core as mx

        return mx.array([ids]) if self._inputs is None else mx.array(self._inputs[ids])[None]

    def _feed(self, ids: list[int]) -> None:
        """Put ids into the cache whose logits are not wanted. A few of them can go with the last pass instead."""
        import mlx.core as mx

        if len(ids) <= _SPARE_ROWS:
            return
        for at in range(0, len(ids), CHUNK):
            chunk = ids[at : at + CHUNK]
            # Logits stay unevaluated: MLX computes what `eval` needs, and the head is not part of the cache.
            self._model(self._input(chunk), cache=self._cache)
            mx.eval([entry.state for entry in self._cache])
            self._ids += chunk

    def _forward(self, ids: list[int], rows: int) -> NDArray[np.float32]:
        import mlx.core as mx

        logits = self._model(self._input(ids), cache=self._cache)[0, -rows:]
        # np.array copies, so that masking cannot reach memory that MLX owns.
        out = np.array(logits.astype(mx.float32))
        self._ids += ids
        return out
