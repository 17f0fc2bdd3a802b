"""Example prompts. Each has a note on what it shows about speculation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt with its name and what it shows."""

    name: str
    shows: str
    prompt: str


EXAMPLES: tuple[Example, ...] = (
    Example(
        "Explanation",
        "Ordinary prose: common phrases are easy to draft, facts are not.",
        "Explain to a curious twelve-year-old why the sky is blue in the day and red in the evening.",
    ),
    Example(
        "Story",
        "Free writing: many good next words, so draft tokens are rejected more often.",
        "Write the beginning of a story about a lighthouse keeper who finds a letter addressed to the sea.",
    ),
    Example(
        "Fix a text",
        "The answer repeats the prompt: even n-gram lookup drafts well.",
        "Copy the following text and correct only its spelling mistakes.\n\n"
        "The harbour was allmost empty when the ferry arived. Two fishermen were mending there nets, and a dog sleept "
        "in the sun. Nobody had expeckted a visitor before the summer, so the ferry's only passenger had to carry his "
        "own suitcases up the hill to the hotel.",
    ),
    Example(
        "Code",
        "Code is repetitive: brackets, names and indentation are easy to draft.",
        "Write a Python class Stack with the methods push, pop, peek and is_empty. Give each method a docstring and "
        "raise IndexError where the stack is empty.",
    ),
    Example(
        "List",
        "A fixed pattern per line: the pattern is easy to draft, the content is not.",
        "List eight trees that grow in Europe. For each, give its name, its Latin name and one use of its wood, in the "
        "form: name (Latin name): use.",
    ),
)
