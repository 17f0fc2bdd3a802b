"""From what a person typed to the ids that both models see."""

from __future__ import annotations

from collections.abc import Sequence

from specviz.core.errors import PromptError
from specviz.core.ports import Capabilities, Exchange, Target
from specviz.core.settings import Settings, is_text


def refuse_empty(prompt: str) -> None:
    """Refuse a prompt of nothing but space, or of bytes that are no text.

    Raises:
        PromptError: it is empty, or cannot be encoded.
    """
    if not prompt.strip():
        raise PromptError("The prompt is empty.", "Type a question, or choose an example.")
    if not is_text(prompt):
        raise PromptError("The prompt is not valid text: it holds bytes that are not UTF-8.", "Give it as UTF-8.")


def prepare(target: Target, settings: Settings, prompt: str, before: Sequence[Exchange] = ()) -> tuple[str, list[int]]:
    """The text that is sent, chat template applied unless `raw`, and its ids.

    Args:
        before: the conversation up to the prompt; with `raw` one text after the other.

    Raises:
        PromptError: nothing can be decoded from it.
    """
    refuse_empty(prompt)
    if settings.raw:
        text = without_template(prompt, before=before)
    else:
        text = target.tokenizer.chat(prompt, settings.system, before)
    ids = target.tokenizer.encode(text)
    check_prompt(ids, target.capabilities)
    return text, ids


def without_template(prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
    """The text for a model that knows no turns: system prompt, earlier turns and prompt, each on lines of its own."""
    earlier = (text for pair in before for text in pair)
    return "\n".join([*(part for part in (system, *earlier) if part), prompt])


def check_prompt(prompt_ids: Sequence[int], capabilities: Capabilities) -> None:
    """Refuse ids that nothing can be decoded from.

    Raises:
        PromptError: empty, no room left in the context, or an id outside the vocabulary.
    """
    if not prompt_ids:
        raise PromptError("The prompt has no tokens.", "Type a question, or choose an example.")
    if len(prompt_ids) >= capabilities.max_context:
        raise PromptError(
            f"The prompt has {len(prompt_ids)} tokens; the target's context holds {capabilities.max_context}, "
            "prompt and output together.",
            "Shorten the prompt, or choose a target with a longer context.",
        )
    outside = next((i for i in prompt_ids if not 0 <= i < capabilities.vocab_size), None)
    if outside is not None:
        raise PromptError(
            f"Token id {outside} is outside the target's vocabulary of {capabilities.vocab_size}.",
            "The prompt must be encoded by the target's own tokenizer.",
        )
