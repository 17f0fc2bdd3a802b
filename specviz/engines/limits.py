"""What the scorers of all engines share: contexts that none of them takes, and what a cache keeps of a context."""

from __future__ import annotations

from collections.abc import Sequence

from specviz.core.errors import PromptError


def check_context(
    token_ids: Sequence[int], rows: int, *, name: str, vocab_size: int, max_context: int, checked: int = 0
) -> None:
    """Refuse what cannot be scored.

    Args:
        token_ids: the whole context.
        rows: how many rows are wanted.
        name: of the model, for messages.
        vocab_size: number of real tokens.
        max_context: tokens.
        checked: how many ids at the beginning were found in order earlier.

    Raises:
        PromptError: no ids, more than the model's context, or an id outside its vocabulary.
        ValueError: `rows` is out of range.
    """
    if not token_ids:
        raise PromptError("The prompt is empty: there is nothing to continue.", "Give at least one token.")
    if len(token_ids) > max_context:
        raise PromptError(
            f"{len(token_ids):,} tokens do not fit the context of {name}, which is {max_context:,} tokens.",
            "Shorten the prompt.",
        )
    if not 1 <= rows <= len(token_ids):
        raise ValueError(f"rows must be from 1 to {len(token_ids)}, not {rows}")
    new = token_ids[checked:]
    low, high = min(new, default=0), max(new, default=0)
    if low < 0 or high >= vocab_size:
        raise PromptError(
            f"Token id {low if low < 0 else high} is outside the vocabulary of {name}, "
            f"which has ids 0 to {vocab_size - 1}."
        )


def shared_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common prefix."""
    n = min(len(a), len(b))
    # The usual case, and fast: the cache is a prefix of the context.
    if a[:n] == b[:n]:
        return n
    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low
