"""Prompts as a person might type them, made from templates and topics.

To add a domain: its name in `DOMAINS`, its phrasings in `data/templates.json`, its limits in `data/limits.json`, and
the lists that the phrasings name in `data/topics.json`. A phrasing with `{text}` works on a given text and is used as
it stands; the others are varied by the limits and by `_voice`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from string import Formatter

from specviz.distill.damage import damage, one_typo
from specviz.distill.texts import held_out_pairs, limits, passages, templates, topics

DOMAINS = ("chat", "explanation", "story", "list", "email", "python", "javascript", "json", "summarise", "fix")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One user message.

    Attributes:
        domain: one of `DOMAINS`.
        text: the message.
    """

    domain: str
    text: str


def first_of_each(prompts: Iterable[Prompt], per_domain: int | None) -> list[Prompt]:
    """The first `per_domain` prompts of each domain, in their order; None is all of them."""
    seen: Counter[str] = Counter()
    kept = []
    for prompt in prompts:
        seen[prompt.domain] += 1
        if per_domain is None or seen[prompt.domain] <= per_domain:
            kept.append(prompt)
    return kept


def training_prompts(per_domain: int, seed: int) -> list[Prompt]:
    """Distinct prompts, `per_domain` of each domain, in the order of `DOMAINS`; the seed decides them.

    Each phrasing of a domain is used equally often, as far as its topics allow.

    Raises:
        ValueError: a domain has fewer distinct prompts.
    """
    return [prompt for domain in DOMAINS for prompt in _distinct(domain, per_domain, random.Random(f"{seed} {domain}"))]


def summarise_prompt(text: str, rng: random.Random) -> Prompt:
    """A prompt that asks for a summary of the text."""
    return _prompt("summarise", rng.choice(templates()["summarise"]), {"text": text}, rng)


def fix_prompt(text: str, rng: random.Random) -> Prompt:
    """A prompt that asks to correct the text, which gets its mistakes here."""
    return _prompt("fix", rng.choice(templates()["fix"]), {"text": text}, rng)


@cache
def held_out() -> tuple[Prompt, ...]:
    """Eighty prompts to measure with, eight of each domain; they share no passage and no topic with the training."""
    return tuple(Prompt(domain, text) for domain, text in held_out_pairs())


def _distinct(domain: str, wanted: int, rng: random.Random) -> list[Prompt]:
    found: dict[Prompt, None] = {}
    for template, values in _fills(templates()[domain], wanted, rng):
        if len(found) == wanted:
            break
        found[_prompt(domain, template, values, rng)] = None
    if len(found) < wanted:
        raise ValueError(
            f"the domain {domain} has {len(found)} distinct prompts, {wanted} were asked for; "
            "ask for fewer, or add phrasings or topics"
        )
    prompts = list(found)
    rng.shuffle(prompts)
    return prompts


def _fills(phrasings: tuple[str, ...], wanted: int, rng: random.Random) -> Iterator[tuple[str, dict[str, str]]]:
    """The phrasings in turn, each at most `wanted` times, with other values every time."""
    fields = {template: [name for _, name, _, _ in Formatter().parse(template) if name] for template in phrasings}
    sizes = {template: prod(len(_items()[name]) for name in names) for template, names in fields.items()}
    numbers = {template: rng.sample(range(size), min(size, wanted)) for template, size in sizes.items()}
    for turn in range(wanted):
        for template in phrasings:
            if turn < len(numbers[template]):
                yield template, _values(fields[template], numbers[template][turn])


def _values(names: list[str], number: int) -> dict[str, str]:
    """Combination `number` of the values of the fields: the number is read as one digit per field."""
    values = {}
    for name in names:
        number, digit = divmod(number, len(_items()[name]))
        values[name] = _items()[name][digit]
    return values


def _prompt(domain: str, template: str, values: Mapping[str, str], rng: random.Random) -> Prompt:
    if "text" in values:
        text = damage(values["text"], rng) if domain == "fix" else values["text"]
        return Prompt(domain, template.format(text=text))
    text = re.sub(r"\ba (?=[aei])", "an ", template.format(**values))
    if rng.random() < 0.2:
        text += (" " if text[-1] in ".?!" else ". ") + rng.choice(limits()[domain])
    return Prompt(domain, _voice(text, rng))


def _voice(text: str, rng: random.Random) -> str:
    """The text as one of several people would type it."""
    mood = rng.random()
    if mood < 0.12:
        return text[0].lower() + text[1:].rstrip(".?!")
    if mood < 0.18:
        return text.lower().replace("'", "").rstrip(".?!")
    text = text[0].upper() + text[1:]
    if mood < 0.26:
        return one_typo(text, rng)
    if mood < 0.30 and "lease" not in text:
        return text + " Thanks!" if text[-1] in "?!" else text.rstrip(".") + rng.choice((", please.", " please"))
    return text


def _runs(passage: str) -> Iterator[str]:
    """The passage and every run of two or more of its sentences."""
    sentences = re.split(r"(?<=[.!?])\s+", passage)
    for start in range(len(sentences) - 1):
        for end in range(start + 2, len(sentences) + 1):
            yield " ".join(sentences[start:end])


@cache
def _items() -> Mapping[str, tuple[str, ...]]:
    """Field → what it can be replaced by."""
    return {**topics(), "text": tuple(run for text in passages() for run in _runs(text))}
