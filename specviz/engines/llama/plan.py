"""What loading a GGUF file will take, before any of it is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from specviz.core.errors import SettingsError, UnsupportedModelError
from specviz.engines.gguf.llama_rules import check_for_llama
from specviz.engines.gguf.memory import available, cache_bytes, needed

#: Tokens of context without a wish. A cache takes its whole memory when it is made.
DEFAULT_CONTEXT = 8192
_LEAST_CONTEXT = 512


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """A checked file.

    Attributes:
        path: of a split model its first part.
        context: tokens.
        weights_bytes, cache_bytes: the memory that weights and one cache take.
    """

    path: Path
    context: int
    weights_bytes: int
    cache_bytes: int

    @property
    def memory(self) -> str:
        """The memory in words."""
        return (
            f"{self.weights_bytes / 1e6:,.0f} MB of weights, {self.cache_bytes / 1e6:,.0f} MB for a context of "
            f"{self.context:,} tokens"
        )


def plan(name: str, path: Path, wish: int = 0, *, tokenizer: bool = True) -> LoadPlan:
    """Check a file, and choose the context.

    Args:
        name: of the model, for messages.
        path: of a split model its first part.
        wish: tokens; 0 takes the model's own context, at most `DEFAULT_CONTEXT`, or half of that, a quarter and so on
            where the memory does not suffice.
        tokenizer: whether the file must have one.

    Raises:
        UnsupportedModelError: a damaged file, or one that needs more memory than there is.
        SettingsError: a context that is longer than the model's.
    """
    file = check_for_llama(path, tokenizer)
    trained = file.metadata.get(f"{file.metadata.get('general.architecture')}.context_length")
    most = trained if isinstance(trained, int) and trained > 0 else DEFAULT_CONTEXT
    if wish > most:
        raise SettingsError(
            f"{name} was trained for contexts of at most {most:,} tokens, not {wish:,}.",
            f"Give --context {most} or less.",
        )
    free, context = available(), wish or min(most, DEFAULT_CONTEXT)
    while not wish and needed(file, context) > free and context // 2 >= _LEAST_CONTEXT:
        context //= 2
    if needed(file, context) > free:
        raise UnsupportedModelError(
            f"{name} needs {needed(file, context) / 1e6:,.0f} MB of memory with a context of {context:,} tokens, and "
            f"{free / 1e6:,.0f} MB are free.",
            "Give a smaller --context, use a smaller model or quantization, or end other programs.",
        )
    return LoadPlan(path, context, file.file_bytes, context * cache_bytes(file))
