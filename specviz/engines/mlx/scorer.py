"""Logits of a context's last tokens, with a KV cache that follows the context by itself.

Callers always pass the whole context. The cache keeps the longest prefix that it shares with it and forgets the rest,
so rejected draft tokens disappear without anybody having to say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.errors import PromptError, UnsupportedModelError

CHUNK = 512  # ids per pass of a prefill: bounds memory, and how long a stop has to wait
# Extra ids in front of the wanted rows that go through the head with them. A pass of their own reads all weights once
# more: on a CPU that costs as much as the head for about 90 rows.
_SPARE_ROWS = 64
_REWINDABLE = {"KVCache", "QuantizedKVCache"}


def empty_cache(model: Any) -> list[Any]:
    """A new cache for an mlx-lm module, one entry per layer."""
    from mlx_lm.models import cache

    make: Any = cache.make_prompt_cache  # has no return annotation
    return list(make(model))


def check_rewindable(cache: Sequence[Any], name: str) -> None:
    """Refuse a cache from which tokens cannot be taken back.

    Speculation takes rejected tokens back in every round. A rotating window or a recurrent state has overwritten
    what stood there before. ConcatenateKVCache is refused too: its `trim` moves the offset and leaves the keys.

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


class MlxScorer:
    """One KV cache over a model's weights. Not for two threads, and only for the thread that loaded the model.

    Args:
        name: of the model, for messages.
        model: mlx-lm's `mlx.nn.Module`.
        vocab_size: number of real tokens: ids at or beyond it are refused, and rows of logits there are padding.
        max_context: tokens.
        inputs: (vocab_size,) what the model reads in place of each id, where it has a vocabulary of its own, which
            its logits are over then; None where it reads the ids themselves.
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
        self._check(ids, rows)
        kept = min(_shared(self._ids, ids), len(ids) - rows)
        try:
            self._rewind(kept)
            self._feed(ids[kept : len(ids) - rows])
            logits = self._forward(ids[len(self._ids) :], rows)
        except BaseException:
            # Some layers may have taken the ids and others not: such a cache is worth nothing.
            self.reset()
            raise
        if self._inputs is None:
            logits[:, self._vocab_size :] = -np.inf
        return logits

    def _check(self, ids: list[int], rows: int) -> None:
        if not ids:
            raise PromptError("The prompt is empty: there is nothing to continue.", "Give at least one token.")
        if len(ids) > self._max_context:
            raise PromptError(
                f"{len(ids):,} tokens do not fit the context of {self._name}, which is {self._max_context:,} tokens.",
                "Shorten the prompt.",
            )
        if not 1 <= rows <= len(ids):
            raise ValueError(f"rows must be from 1 to {len(ids)}, not {rows}")
        real = self._vocab_size
        low, high = min(ids), max(ids)
        if low < 0 or high >= real:
            raise PromptError(
                f"Token id {low if low < 0 else high} is outside the vocabulary of {self._name}, "
                f"which has ids 0 to {real - 1}."
            )

    def _rewind(self, length: int) -> None:
        surplus = len(self._ids) - length
        if surplus > 0:
            trimmed = {entry.trim(surplus) for entry in self._cache}
            if trimmed != {surplus}:
                raise RuntimeError(f"a cache that held {len(self._ids)} ids gave back {trimmed}, not {surplus}")
            del self._ids[length:]

    def _input(self, ids: list[int]) -> Any:
        """What the model reads, (1, n). The cache is compared by the ids as they were given, never by these."""
        import mlx.core as mx

        return mx.array([ids]) if self._inputs is None else mx.array(self._inputs[ids])[None]

    def _feed(self, ids: list[int]) -> None:
        """Take ids into the cache whose logits nobody wants, but for a few that can go with the last pass."""
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


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common prefix."""
    n = min(len(a), len(b))
    # The usual case by far, and decided in C: the cache is a prefix of the context.
    if a[:n] == b[:n]:
        return n
    return next(i for i in range(n) if a[i] != b[i])
