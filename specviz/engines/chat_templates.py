"""Chat formats of large families of models, for a target whose tokenizer has no template.

Each is a pure function of the prompt, the system prompt and the earlier turns. It returns the text to encode, up to
where the answer begins. The formats are those that the makers of the models publish. An empty system prompt gives no
system turn, although a model's own template may have a default.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from specviz.core.ports import Exchange
from specviz.engines.tokenizer import Format


def llama3(prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
    """Llama 3, 3.1, 3.2 and 3.3: one beginning of text, then a header and an end for every turn."""

    def turn(role: str, content: str) -> str:
        # The code of the makers strips the content of a turn.
        return f"<|start_header_id|>{role}<|end_header_id|>\n\n{content.strip()}<|eot_id|>"

    first = turn("system", system) if system else ""
    earlier = "".join(turn("user", question) + turn("assistant", answer) for question, answer in before)
    asks = f"{turn('user', prompt)}<|start_header_id|>assistant<|end_header_id|>\n\n"
    return f"<|begin_of_text|>{first}{earlier}{asks}"


def chatml(prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
    """ChatML, the format of Qwen, SmolLM2, Hermes and others."""

    def turn(role: str, content: str) -> str:
        return f"<|im_start|>{role}\n{content}<|im_end|>\n"

    first = turn("system", system) if system else ""
    earlier = "".join(turn("user", question) + turn("assistant", answer) for question, answer in before)
    return f"{first}{earlier}{turn('user', prompt)}<|im_start|>assistant\n"


def harmony(prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
    """Harmony, the format of gpt-oss. The answer begins with a channel, which the model names.

    In Harmony the system message describes the model, and a system prompt becomes the developer's instructions. The
    date, which the system message may contain, is left out, so that equal prompts give equal texts. An earlier answer
    goes to the final channel as a whole.
    """

    def turn(role: str, content: str) -> str:
        return f"<|start|>{role}<|message|>{content}<|end|>"

    model = (
        "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n\nReasoning: medium\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every message."
    )
    instructions = turn("developer", f"# Instructions\n\n{system}") if system else ""
    earlier = "".join(turn("user", question) + turn("assistant<|channel|>final", answer) for question, answer in before)
    return f"{turn('system', model)}{instructions}{earlier}{turn('user', prompt)}<|start|>assistant"


# The first match counts. A fine-tuned model comes before the family that it was made from.
_FAMILIES: tuple[tuple[re.Pattern[str], Format | None], ...] = (
    # Base models, which have no turns, and a family with the names of other models but a format of its own.
    (re.compile(r"(?<![a-z])base(?![a-z])|^meta-llama/(?!.*instruct)|deepseek"), None),
    (re.compile(r"gpt-?oss"), harmony),
    (re.compile(r"hermes|dolphin|smollm|qwen|qwq|chatml"), chatml),
    (re.compile(r"llama-?(v?3|guard-3)"), llama3),
)


def format_of(model: str) -> Format | None:
    """The format that follows from a model's name: `llama-3.3-70b`, `Qwen/Qwen3-32B`, `gpt-oss-120b`.

    None for every name that does not clearly give one, because nothing but the name is known here.
    """
    name = model.strip().lower().replace("_", "-").replace(" ", "-")
    return next((made for pattern, made in _FAMILIES if pattern.search(name)), None)
