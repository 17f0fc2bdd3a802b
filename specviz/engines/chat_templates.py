"""Chat formats of the large families, for a target whose tokenizer brings no template.

Each is a pure function: (prompt, system, the conversation before it) → the text to encode, up to where the answer
begins. They follow what the makers of the models publish. An empty system prompt leaves the part out, where a model's
own template may have a default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from specviz.core.ports import Exchange

Format = Callable[[str, str, Sequence[Exchange]], str]


def llama3(prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
    """Llama 3, 3.1, 3.2 and 3.3: a header and an end for every turn, behind one beginning of text."""

    def turn(role: str, content: str) -> str:
        # The makers' own code strips what a turn holds.
        return f"<|start_header_id|>{role}<|end_header_id|>\n\n{content.strip()}<|eot_id|>"

    first = turn("system", system) if system else ""
    earlier = "".join(turn("user", asked) + turn("assistant", answered) for asked, answered in before)
    asks = f"{turn('user', prompt)}<|start_header_id|>assistant<|end_header_id|>\n\n"
    return f"<|begin_of_text|>{first}{earlier}{asks}"


def chatml(prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
    """ChatML, as Qwen, SmolLM2, Hermes and others have it."""

    def turn(role: str, content: str) -> str:
        return f"<|im_start|>{role}\n{content}<|im_end|>\n"

    first = turn("system", system) if system else ""
    earlier = "".join(turn("user", asked) + turn("assistant", answered) for asked, answered in before)
    return f"{first}{earlier}{turn('user', prompt)}<|im_start|>assistant\n"


def harmony(prompt: str, system: str = "", before: Sequence[Exchange] = ()) -> str:
    """Harmony, the format of gpt-oss. The answer begins with a channel, which the model names itself.

    In Harmony the system message says what the model is; what is called a system prompt elsewhere are a developer's
    instructions. It may hold the date, which is left out here: equal prompts shall give equal texts. All of an earlier
    answer stands in the final channel.
    """

    def turn(role: str, content: str) -> str:
        return f"<|start|>{role}<|message|>{content}<|end|>"

    model = (
        "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n\nReasoning: medium\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every message."
    )
    instructions = turn("developer", f"# Instructions\n\n{system}") if system else ""
    earlier = "".join(turn("user", asked) + turn("assistant<|channel|>final", said) for asked, said in before)
    return f"{turn('system', model)}{instructions}{earlier}{turn('user', prompt)}<|start|>assistant"


# The first that fits. A fine-tune is found before the family that it was made from.
_FAMILIES: tuple[tuple[re.Pattern[str], Format | None], ...] = (
    # Models that continue a text and know no turns; and a family that kept others' names and not their format.
    (re.compile(r"(?<![a-z])base(?![a-z])|^meta-llama/(?!.*instruct)|deepseek"), None),
    (re.compile(r"gpt-?oss"), harmony),
    (re.compile(r"hermes|dolphin|smollm|qwen|qwq|chatml"), chatml),
    (re.compile(r"llama-?(v?3|guard-3)"), llama3),
)


def format_of(model: str) -> Format | None:
    """The format that a model's name tells: `llama-3.3-70b`, `Qwen/Qwen3-32B`, `gpt-oss-120b`; None where it does not.

    A name is all that there is to go by here, so one that says too little is left alone.
    """
    name = model.strip().lower().replace("_", "-").replace(" ", "-")
    return next((made for pattern, made in _FAMILIES if pattern.search(name)), None)
