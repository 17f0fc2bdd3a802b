"""A language model that ik_llama.cpp runs: weights of a GGUF file, its tokenizer, and a cache for every user of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from specviz.core.errors import UnsupportedModelError
from specviz.core.vocabulary import Vocabulary
from specviz.engines.llama.handle import Handle
from specviz.engines.llama.plan import LoadPlan
from specviz.engines.llama.rewind import check_rewindable
from specviz.engines.llama.scorer import CHUNK, LlamaScorer
from specviz.engines.llama.threads import Threads, threads
from specviz.engines.llama.tokenizer import GgufTokenizer
from specviz.engines.llama.trust import trusted_chunk


@dataclass(frozen=True, slots=True, eq=False)
class LlamaModel:
    """A loaded model, a `specviz.core.ports.Model`.

    Attributes:
        name: as the user gave it.
        tokenizer: of the file.
        max_context: tokens.
        precision: number format of the weights, such as "Q8_0".
        file: the GGUF file.
        handle, threads: its weights, and how many threads a pass takes.
        chunk: ids per pass of a prefill.
        engine: what runs it.
        blas: empty: the engine has its own kernels.
    """

    name: str
    tokenizer: GgufTokenizer
    max_context: int
    precision: str
    file: Path
    handle: Handle
    threads: Threads
    chunk: int
    engine: str = "llama"
    blas: str = ""

    @property
    def model_file(self) -> str:
        """The name of the file."""
        return self.file.name

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's."""
        return self.tokenizer.vocabulary

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end a generation."""
        return self.tokenizer.stop_ids

    def scorer(self) -> LlamaScorer:
        """A new, empty cache over these weights."""
        size = self.tokenizer.vocab_size
        return LlamaScorer(
            self.name,
            self.handle,
            vocab_size=size,
            width=size,
            max_context=self.max_context,
            threads=self.threads,
            chunk=self.chunk,
        )


def load(name: str, plan: LoadPlan, on_step: Callable[[int], None] = lambda step: None) -> LlamaModel:
    """Load a GGUF file.

    Args:
        name: for messages.
        plan: see `specviz.engines.llama.plan.plan`.
        on_step: called with 0, 1 and 2: how many of the two parts, weights and checks, are done.

    Raises:
        UnsupportedModelError: an architecture that the library does not know, or a cache that cannot be rewound.
    """
    on_step(0)
    handle = Handle(plan.path)
    on_step(1)
    tokenizer = GgufTokenizer(handle)
    chunk = prepare(name, handle, tokenizer.vocab_size)
    on_step(2)
    precision = in_words(handle.precision, chunk)
    return LlamaModel(name, tokenizer, plan.context, precision, plan.path, handle, threads, chunk)


def prepare(name: str, handle: Handle, vocab_size: int) -> int:
    """Check that the cache can be rewound, and choose the number of threads.

    Returns:
        Ids per pass of a prefill.

    Raises:
        UnsupportedModelError: it cannot, or the model is no decoder.
    """
    if handle.has_encoder:
        raise UnsupportedModelError(f"{name} has an encoder, and only decoders can be run.", "Use another model.")
    window = handle.window

    def scorer(chunk: int = CHUNK) -> LlamaScorer:
        return LlamaScorer(
            name,
            handle,
            vocab_size=vocab_size,
            width=vocab_size,
            max_context=window + 256,
            threads=threads,
            chunk=chunk,
        )

    one = scorer()
    check_rewindable(one, name, vocab_size, window)
    threads.measure(lambda: one.score([0, 1], 1))
    return trusted_chunk(scorer, vocab_size)


def in_words(precision: str, chunk: int) -> str:
    """The number format, and whether prefills need small passes."""
    return precision if chunk == CHUNK else f"{precision}, prefilled {chunk} tokens at a time"
