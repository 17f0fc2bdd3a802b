"""The chat template of a model, a Jinja program that comes with its weights, run in a sandbox."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from specviz.core.errors import UnsupportedModelError

if TYPE_CHECKING:
    from jinja2 import Template

#: What a template may return, in characters; a hostile one could fill the memory.
_LONGEST = 4_000_000


def render(
    template: str,
    messages: Sequence[Mapping[str, str]],
    *,
    add_generation_prompt: bool,
    bos: str = "",
    eos: str = "",
) -> str:
    """The text of a conversation, with the functions that templates expect of the transformers library.

    Args:
        messages: `role` and `content` each.
        add_generation_prompt: whether the text ends where the answer begins.
        bos, eos: the texts of these tokens.

    Raises:
        UnsupportedModelError: the template fails, as some do on a system prompt.
    """
    try:
        text = _compiled(template).render(
            messages=list(messages),
            add_generation_prompt=add_generation_prompt,
            bos_token=bos,
            eos_token=eos,
            tools=None,
            documents=None,
        )
    except Exception as exc:  # a template is a program, which can raise anything
        raise UnsupportedModelError(
            f"The model's chat template failed: {exc}.",
            "Leave the system prompt out, or send the prompt without the template.",
        ) from exc
    if len(text) > _LONGEST:
        raise UnsupportedModelError(f"The model's chat template gave {len(text):,} characters.", "Use another model.")
    return text


@cache
def _compiled(template: str) -> Template:
    from jinja2 import ext
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[ext.loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return environment.from_string(template)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)
