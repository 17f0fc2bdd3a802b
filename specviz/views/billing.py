"""What a server has billed for a run."""

from __future__ import annotations

from specviz.record.state import RunState
from specviz.views import words


def billed_in_all(state: RunState) -> int | None:
    """Tokens that the server has billed so far; None where it reported none."""
    known = [n for n in (state.sums.billed_prompt, state.sums.billed_completion) if n is not None]
    return sum(known) if known else None


def billed_parts(state: RunState) -> str:
    """Prompt and output tokens of the bill, in words."""
    parts = (state.sums.billed_prompt, state.sums.billed_completion)
    prompt, output = (words.NOT_KNOWN if n is None else f"{n:,}" for n in parts)
    return f"{prompt} prompt + {output} output"
