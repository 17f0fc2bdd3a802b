"""Logits after the last tokens of a context, with a KV cache that follows the context.

Callers always pass the whole context. The cache keeps the longest prefix that it shares with the context and drops the
rest, so no caller has to remove rejected draft tokens.
"""

from __future__ import annotations

import ctypes
import itertools
import weakref
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.errors import RunError
from specviz.core.ports import Scorer
from specviz.core.sampling import Logits
from specviz.engines.limits import check_context, shared_prefix
from specviz.engines.llama.handle import Handle
from specviz.engines.llama.library import forget_words, last_words, library
from specviz.engines.llama.threads import Threads

CHUNK = 128  # ids per pass of a prefill: bounds memory, and how long a stop has to wait; larger ones are not faster
#: The library has other kernels for passes of 32 tokens and more. In smaller ones each token has the bits that it has
#: alone, so all rows are computed in these: a block gives what single tokens give.
SMALL = 31
#: Blocks that one pass scores. Sequence 0 is the context itself.
SEQUENCES = 16
#: Tells the passes of one scorer from those of another. An `id` is used again when a scorer is gone.
_SERIALS = itertools.count()


class LlamaScorer(Scorer):
    """One context of the library over a model's weights. Not for two threads at once.

    Rows are views of the library's memory. They are valid until the next call.

    Args:
        name: of the model, for messages.
        handle: of the loaded model, which must live longer than this.
        vocab_size: number of real tokens. Larger ids are refused.
        width: logits in a row; those from `vocab_size` on are padding. With `inputs` it is the model's own vocabulary.
        max_context: tokens.
        threads: how many threads a pass takes.
        chunk: ids per pass of a prefill, at most `CHUNK`.
        inputs: (vocab_size,) the id that the model reads in place of each given id, for a model with a vocabulary of
            its own: its logits are over that vocabulary. None where the model reads the given ids.

    Raises:
        RunError: the library cannot make a context, as when memory does not suffice.
    """

    def __init__(
        self,
        name: str,
        handle: Handle,
        *,
        vocab_size: int,
        width: int,
        max_context: int,
        threads: Threads,
        chunk: int = CHUNK,
        inputs: NDArray[np.int32] | None = None,
    ) -> None:
        self._name, self._handle, self._threads, self._chunk = name, handle, threads, chunk
        self._vocab_size, self._width, self._max_context, self._inputs = vocab_size, width, max_context, inputs
        self._serial = next(_SERIALS)
        self._api = api = library()
        parameters = api.llama_context_default_params()
        parameters.n_ctx = max_context
        parameters.n_batch = parameters.n_ubatch = CHUNK
        parameters.n_seq_max = SEQUENCES
        # Its fused attention is slower behind long contexts (1.4 times at 1,500 tokens of the default model), and ends
        # the process where a key is not finite.
        parameters.flash_attn = False
        parameters.n_threads = parameters.n_threads_batch = self._running = threads.number
        forget_words()
        self._context = api.llama_init_from_model(handle.pointer, parameters)
        if not self._context:
            raise RunError(
                f"{name} cannot be run with a context of {max_context:,} tokens. {last_words()}".rstrip(),
                "Give a smaller --context.",
            )
        self._batch = api.llama_batch_init(CHUNK, 0, SEQUENCES)
        # At the end of the process the system frees it, and another thread may be in a pass.
        weakref.finalize(self, _free, api, self._context, self._batch, handle).atexit = False
        self._token, self._position, self._wanted = (
            np.ctypeslib.as_array(pointer, (CHUNK,))
            for pointer in (self._batch.token, self._batch.pos, self._batch.logits)
        )
        self._ids: list[int] = []
        #: What follows `_ids` in the cache, by sequence, after `score_blocks`.
        self._branches: dict[int, list[int]] = {}
        self._one_sequence()

    @property
    def cached(self) -> int:
        """How many ids of one context the cache holds."""
        return len(self._ids)

    def reset(self) -> None:
        """Forget everything."""
        self._api.llama_kv_cache_clear(self._context)
        self._ids, self._branches = [], {}

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        """Logits after each of the last `rows` ids.

        Args:
            token_ids: the whole context.
            rows: from 1 to `len(token_ids)`.

        Returns:
            (rows, V) float32, a view that the next call overwrites; the last row is the distribution over the next
            token. Padding is -inf.

        Raises:
            PromptError: no ids, more than the model's context, or an id outside its vocabulary.
            RunError: the library failed.
            ValueError: `rows` is out of range.
        """
        ids = token_ids if isinstance(token_ids, list) else list(token_ids)
        shared = shared_prefix(self._ids, ids)
        self._check(ids, rows, shared)
        try:
            self._rewind(ids, shared, len(ids) - rows)
            return self._read(ids, rows)
        except BaseException:
            self.reset()  # some layers may hold the new ids and others not
            raise

    def score_blocks(self, context_ids: Sequence[int], blocks: Sequence[Sequence[int]]) -> list[Logits]:
        """Logits of several blocks that follow the same context, in one pass as long as that is small.

        Each block is a sequence of the library. Tokens that several blocks begin with are computed once.

        Returns: see `specviz.core.ports.Scorer.score_blocks`.

        Raises: as `score` does.
        """
        if len(blocks) < 2:
            return [self.score([*context_ids, *block], len(block) + 1).copy() for block in blocks]
        if len(blocks) > SEQUENCES or 1 + sum(map(len, blocks)) > SMALL:
            half = len(blocks) // 2
            return self.score_blocks(context_ids, blocks[:half]) + self.score_blocks(context_ids, blocks[half:])
        context = list(context_ids)
        shared = shared_prefix(self._ids, context)
        for block in blocks:
            self._check([*context, *block], 1, shared)
        try:
            self._rewind(context, shared, len(context) - 1)
            self._feed(context[len(self._ids) : -1])
            return self._read_blocks(context, blocks)
        except BaseException:
            self.reset()
            raise
        finally:
            self._one_sequence()

    def _check(self, ids: list[int], rows: int, checked: int) -> None:
        check_context(
            ids, rows, name=self._name, vocab_size=self._vocab_size, max_context=self._max_context, checked=checked
        )

    def _rewind(self, ids: list[int], shared: int, most: int) -> None:
        """Keep the part of the cache that begins `ids`, but at most the first `most` of them.

        Args:
            shared: how many ids `_ids` has in common with `ids`.
        """
        api, context = self._api, self._context
        kept = min(shared, most)
        if self._branches:
            begin = len(self._ids)
            if kept == begin and most > begin:
                tail = ids[begin:most]
                best = max(self._branches, key=lambda n: shared_prefix(self._branches[n], tail))
                if count := shared_prefix(self._branches[best], tail):
                    kept += count
                    if best != 0:
                        api.llama_kv_cache_seq_rm(context, 0, begin, -1)
                        api.llama_kv_cache_seq_cp(context, best, 0, begin, kept)
                    self._ids = ids[:kept]
            for sequence in range(1, len(self._branches)):
                api.llama_kv_cache_seq_rm(context, sequence, -1, -1)
            self._branches = {}
            api.llama_kv_cache_seq_rm(context, 0, kept, -1)
        elif kept < len(self._ids) and not api.llama_kv_cache_seq_rm(context, 0, kept, -1):
            raise RunError(f"The cache of {self._name} cannot be rewound.")
        del self._ids[kept:]

    def _feed(self, ids: list[int]) -> None:
        """Put ids into the cache whose logits are not wanted."""
        for at in range(0, len(ids), self._chunk):
            self._pass(ids[at : at + self._chunk], 0)

    def _read(self, ids: list[int], rows: int) -> Logits:
        new = ids[len(self._ids) :]
        if len(new) > SMALL:
            self._feed(new[:-rows])
            new = new[-rows:]
        if len(new) <= SMALL:
            return self._pass(new, rows)
        chunks = [new[at : at + SMALL] for at in range(0, len(new), SMALL)]
        return np.concatenate([self._pass(chunk, len(chunk)).copy() for chunk in chunks])

    def _pass(self, ids: list[int], rows: int) -> Logits:
        """One pass over at most `CHUNK` ids; logits of the last `rows`."""
        count, begin = len(ids), len(self._ids)
        self._token[:count] = ids if self._inputs is None else self._inputs[ids]
        self._position[:count] = np.arange(begin, begin + count)
        self._wanted[:count] = 0
        self._wanted[count - rows : count] = 1
        logits = self._decode(count, rows)
        self._ids += ids
        return logits

    def _read_blocks(self, context: list[int], blocks: Sequence[Sequence[int]]) -> list[Logits]:
        """The last id of the context and all blocks in one pass, as a tree of shared beginnings."""
        api, begin = self._api, len(context) - 1
        for sequence in range(1, len(blocks)):
            api.llama_kv_cache_seq_cp(self._context, 0, sequence, 0, begin)
        # Node → the sequences that it belongs to. Keys are the ids from the last id of the context on.
        nodes: dict[tuple[int, ...], list[int]] = {}
        for sequence, block in enumerate(blocks):
            for length in range(len(block) + 1):
                nodes.setdefault((context[-1], *block[:length]), []).append(sequence)
        ordered = sorted(nodes, key=len)
        for at, path in enumerate(ordered):
            self._token[at] = path[-1] if self._inputs is None else self._inputs[path[-1]]
            self._position[at] = begin + len(path) - 1
            self._batch.n_seq_id[at] = len(nodes[path])
            for i, sequence in enumerate(nodes[path]):
                self._batch.seq_id[at][i] = sequence
        self._wanted[: len(ordered)] = 1
        logits = self._decode(len(ordered), len(ordered))
        self._ids.append(context[-1])
        self._branches = {sequence: list(block) for sequence, block in enumerate(blocks)}
        row_of = {path: at for at, path in enumerate(ordered)}
        return [
            logits[[row_of[(context[-1], *block[:length])] for length in range(len(block) + 1)]] for block in blocks
        ]

    def _one_sequence(self) -> None:
        """Let every entry of the batch belong to sequence 0 alone."""
        for at in range(CHUNK):
            self._batch.n_seq_id[at] = 1
            self._batch.seq_id[at][0] = 0

    def _decode(self, count: int, rows: int) -> Logits:
        api = self._api
        if self._running != self._threads.number:
            self._running = self._threads.number
            api.llama_set_n_threads(self._context, self._running, self._running)
        self._batch.n_tokens = count
        began = perf_counter()
        failed = api.llama_decode(self._context, self._batch)
        if failed:
            raise RunError(f"The GGUF engine could not compute a pass of {self._name} (code {failed}). {last_words()}")
        if not rows:
            return np.empty((0, self._width), np.float32)
        pointer = api.llama_get_logits(self._context)  # waits for the end of the pass
        self._threads.took(self._serial, count, perf_counter() - began)
        address = ctypes.cast(pointer, ctypes.c_void_p).value
        memory: Any = (ctypes.c_float * (rows * self._width)).from_address(address or 0)
        memory.owner = self  # the library frees this memory with the context
        logits: Logits = np.frombuffer(memory, np.float32).reshape(rows, self._width)
        if self._inputs is None and self._vocab_size < self._width:
            logits[:, self._vocab_size :] = -np.inf
        return logits


def _free(api: Any, context: int, batch: Any, handle: object) -> None:
    """`handle` is held until the context is freed, because the context uses the model."""
    api.llama_free(context)
    api.llama_batch_free(batch)
