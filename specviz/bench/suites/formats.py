"""What the fields of a row mean: one function per kind of file, from a row to its prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from specviz.bench.suites.rows import PromptRow
from specviz.bench.suites.suite import BenchPrompt
from specviz.core.errors import SettingsError

Kind = Literal["gsm8k", "humaneval", "spec-bench", "jsonl", "csv"]
Fields = Mapping[str, Any]

#: Where a prompt is looked for when no column is named, the first that exists.
PROMPT_COLUMNS = ("prompt", "question", "text", "instruction", "input")
_DOMAIN_COLUMNS = ("domain", "category", "task")
_ID_COLUMNS = ("id", "task_id", "question_id")


class BadRowError(ValueError):
    """A row cannot be used; the message says why in words that follow "line 7:"."""


class PromptReader:
    """Turns rows into prompts; what is not given is decided by the first row that can be read, for all of them.

    Attributes:
        kind: None until it is known.
        column: the column with the prompt, in lower case; None until it is known, or where the kind has its own.
    """

    def __init__(self, kind: Kind | None, column: str | None, domain: str) -> None:
        if column is not None and kind not in (None, "jsonl", "csv"):
            raise SettingsError(
                f"A file in the format {kind} has its own columns.", "Leave out the format or the column."
            )
        self.kind: Kind | None = "jsonl" if column is not None and kind is None else kind
        self.column = column.strip().lower() if column is not None else None
        self._domain = domain

    def prompts(self, row: PromptRow) -> list[BenchPrompt]:
        """The prompts of a row, in order; a row of Spec-Bench has several.

        Raises:
            BadRowError: the row cannot be used.
        """
        if row.why:
            raise BadRowError(row.why)
        self.kind = self.kind or kind_of(row.fields)
        found = self._read(row.fields, _name(row))
        for prompt in found:
            _encodable(prompt)
        return found

    def _read(self, fields: Fields, name: str) -> list[BenchPrompt]:
        if self.kind in _READERS:
            return _READERS[self.kind](fields, name)
        self.column = self.column or prompt_column(fields)
        if self.column is None:
            raise BadRowError(f"it has none of the columns {', '.join(PROMPT_COLUMNS)}; name another with --column")
        return _any(fields, name, self.column, self._domain)


def kind_of(fields: Fields) -> Kind | None:
    """The kind of file that a row of JSON lines is from; None where it has no prompt at all."""
    if isinstance(fields.get("turns"), list) and prompt_column(fields) is None:
        return "spec-bench"
    if "prompt" in fields and "canonical_solution" in fields:
        return "humaneval"
    if "question" in fields and "####" in str(fields.get("answer")):
        return "gsm8k"
    return "jsonl" if prompt_column(fields) else None


def prompt_column(names: Iterable[str]) -> str | None:
    """The first of `PROMPT_COLUMNS` that is there."""
    there = set(names)
    return next((name for name in PROMPT_COLUMNS if name in there), None)


def _gsm8k(fields: Fields, name: str) -> list[BenchPrompt]:
    answer = _plain(fields.get("answer")).rpartition("####")[2].strip()
    return [BenchPrompt(name, "maths", _text(fields, "question"), answer)]


def _humaneval(fields: Fields, name: str) -> list[BenchPrompt]:
    return [BenchPrompt(name, "python", _text(fields, "prompt"), _plain(fields.get("canonical_solution")))]


def _spec_bench(fields: Fields, name: str) -> list[BenchPrompt]:
    turns = fields.get("turns")
    if not isinstance(turns, list) or not turns:
        raise BadRowError("its turns are missing, or no array, or empty")
    named = {f"turn {number}": turn for number, turn in enumerate(turns, start=1)}
    texts = [_text(named, turn) for turn in named]
    domain = _first(fields, _DOMAIN_COLUMNS) or "spec-bench"
    return [
        BenchPrompt(f"{name}/{number}", domain, text, before=tuple(texts[: number - 1]))
        for number, text in enumerate(texts, start=1)
    ]


def _any(fields: Fields, name: str, column: str, domain: str) -> list[BenchPrompt]:
    text = _text(fields, column)
    others = {key: value for key, value in fields.items() if key != column}
    return [BenchPrompt(name, _first(others, _DOMAIN_COLUMNS) or domain, text, _plain(others.get("answer")))]


_READERS: Mapping[Kind | None, Callable[[Fields, str], list[BenchPrompt]]] = {
    "gsm8k": _gsm8k,
    "humaneval": _humaneval,
    "spec-bench": _spec_bench,
}


def _text(fields: Fields, column: str) -> str:
    """The prompt as it stands: code to go on with may begin and end in blanks that matter."""
    value = fields.get(column)
    if value is None:
        raise BadRowError(f"its {column} is missing")
    if not isinstance(value, str):
        raise BadRowError(f"its {column} is not a string")
    if not value.strip():
        raise BadRowError(f"its {column} is empty")
    return value


def _name(row: PromptRow) -> str:
    return _first(row.fields, _ID_COLUMNS) or str(row.line)


def _first(fields: Fields, names: tuple[str, ...]) -> str:
    """The first of these that is a word or a whole number."""
    values = (fields.get(name) for name in names)
    words = (str(value).strip() for value in values if isinstance(value, str | int) and not isinstance(value, bool))
    return next((word for word in words if word), "")


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _encodable(prompt: BenchPrompt) -> None:
    try:
        "".join((prompt.id, prompt.domain, prompt.text, prompt.answer)).encode()
    except UnicodeEncodeError:
        raise BadRowError("it has half of a surrogate pair, which is no character") from None
