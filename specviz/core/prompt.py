"""From a typed prompt to the ids that both models get."""

from __future__ import annotations

from collections.abc import Sequence

from specviz.core.errors import PromptError
from specviz.core.ports import Capabilities, Exchange, Target
from specviz.core.settings import Settings, is_text


def refuse_empty(prompt: str) -> None:
    """Refuse a prompt of white space only, or one that is not valid text.

    Raises:
        PromptError: it is empty, or cannot be encoded as UTF-8.
    """
    if not prompt.strip():
        raise PromptError("The prompt is empty.", "Type a question, or choose an example.")
    if not is_text(prompt):
        raise PromptError("The prompt is not valid text: it holds bytes that are not UTF-8.", "Give it as UTF-8.")


def prepare(target: Target, settings: Settings, prompt: str, before: Sequence[Exchange] = ()) -> tuple[str, list[int]]:
    """The text to decode from, with the chat template applied unless `raw`, and its ids.

    Inside a template the user's words are text; with `raw` special tokens in them are parsed.

    Args:
        before: the conversation before the prompt; with `raw`, its texts are joined by newlines.

    Raises:
        PromptError: nothing can be decoded from it.
    """
    refuse_empty(prompt)
    if settings.raw:
        text = without_template(prompt, before=before)
        ids = target.tokenizer.encode(text)
    else:
        text, ids = target.tokenizer.chat_ids(prompt, settings.system, before)
    check_prompt(ids, target.capabilities)
    return text, ids


def without_template(prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
    """The text for a model without chat turns: system prompt, earlier turns and prompt, joined by newlines."""
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
