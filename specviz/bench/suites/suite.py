"""Prompt suites: the prompts of a benchmark, in order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from specviz.bench.suites.builtin import builtin_texts
from specviz.core.errors import SettingsError


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """One prompt of a suite.

    Attributes:
        id: unique within its suite.
        domain: the kind of task; results are also given per domain.
        text: the prompt, word for word.
        answer: what a right answer says or ends in; empty if there is none.
        before: the earlier turns of the same conversation, in order; the target's answers come between them.
    """

    id: str
    domain: str
    text: str
    answer: str = ""
    before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """Prompts under one name."""

    name: str
    prompts: tuple[BenchPrompt, ...]

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains in the order of their first prompts."""
        return tuple(dict.fromkeys(prompt.domain for prompt in self.prompts))

    def first(self, per_domain: int | None = None, limit: int | None = None) -> Suite:
        """The first `per_domain` prompts of each domain, and of these the first `limit`; None is all. Keeps order.

        Raises:
            SettingsError: a number below 1.
        """
        _at_least_one("Prompts per domain", per_domain)
        _at_least_one("The limit of prompts", limit)
        return Suite(self.name, tuple(_of_each(self.prompts, per_domain)[:limit]))


def builtin() -> Suite:
    """The suite that comes with specviz: eight domains, eight prompts each, domain after domain."""
    return Suite(
        "builtin",
        tuple(
            BenchPrompt(f"{domain}/{number}", domain, entry.text, entry.answer)
            for domain, entries in builtin_texts().items()
            for number, entry in enumerate(entries, start=1)
        ),
    )


def _of_each(prompts: tuple[BenchPrompt, ...], wanted: int | None) -> list[BenchPrompt]:
    had: Counter[str] = Counter()
    kept = []
    for prompt in prompts:
        had[prompt.domain] += 1
        if wanted is None or had[prompt.domain] <= wanted:
            kept.append(prompt)
    return kept


def _at_least_one(what: str, number: int | None) -> None:
    if number is not None and number < 1:
        raise SettingsError(f"{what} must be at least 1, not {number}.", "Leave it out to have them all.")
