"""What the fields of a row mean: from a row to its prompts, for each kind of file."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from specviz.bench.suites.rows import PromptRow
from specviz.bench.suites.suite import BenchPrompt
from specviz.core.errors import SettingsError

Kind = Literal["gsm8k", "humaneval", "spec-bench", "jsonl", "csv", "parquet"]
#: Kinds whose column of prompts has to be found.
GENERAL: tuple[Kind | None, ...] = (None, "jsonl", "csv", "parquet")
#: The columns of the others: prompt, domain, answer.
_OWN_COLUMNS: Mapping[Kind | None, tuple[str, str, str]] = {
    "gsm8k": ("question", "maths", "answer"),
    "humaneval": ("prompt", "python", "canonical_solution"),
}

#: Where a prompt is looked for when no column is named, the first that exists.
PROMPT_COLUMNS = ("prompt", "question", "text", "instruction", "input")
_DOMAIN_COLUMNS = ("domain", "category", "task")
_ID_COLUMNS = ("id", "task_id", "question_id")
KNOWN_COLUMNS = {*PROMPT_COLUMNS, *_DOMAIN_COLUMNS, *_ID_COLUMNS, "answer", "canonical_solution", "turns"}


class BadRowError(ValueError):
    """A row cannot be used; the message says why in words that follow "line 7:"."""


class PromptReader:
    """Turns rows into prompts; what is not given is decided by the first row that can be read, for all of them.

    Attributes:
        kind: None until it is known. general: what a file with any other columns is called.
        column: the column with the prompt, in lower case; None until it is known, or where the kind has its own.
    """

    def __init__(self, kind: Kind | None, column: str | None, domain: str, general: Kind = "jsonl") -> None:
        if column is not None and kind not in GENERAL:
            raise SettingsError(
                f"A file in the format {kind} has its own columns.", "Leave out the format or the column."
            )
        self.kind = general if column is not None and kind is None else kind
        self.column = column.strip().lower() if column is not None else None
        self._domain, self._general = domain, general

    def prompts(self, row: PromptRow) -> list[BenchPrompt]:
        """The prompts of a row, in order; a row of Spec-Bench has several.

        Raises:
            BadRowError: the row cannot be used.
        """
        if row.why:
            raise BadRowError(row.why)
        if self.kind is None:
            self.kind = _own_kind(row.fields) or (self._general if prompt_column(row.fields) else None)
        found = self._read(row.fields, _first_word(row.fields, _ID_COLUMNS) or str(row.line))
        try:
            "".join(text for p in found for text in (p.id, p.domain, p.text, p.answer)).encode()
        except UnicodeEncodeError:
            raise BadRowError("it has half of a surrogate pair, which is not a character") from None
        return found

    def _read(self, fields: Mapping[str, Any], name: str) -> list[BenchPrompt]:
        if self.kind == "spec-bench":
            return _turns(fields, name)
        if self.kind in _OWN_COLUMNS:
            column, domain, solution = _OWN_COLUMNS[self.kind]
            answer = _as_text(fields.get(solution))
            if self.kind == "gsm8k":
                answer = answer.rpartition("####")[2].strip()
            return [BenchPrompt(name, domain, _prompt(fields, column), answer)]
        self.column = self.column or prompt_column(fields)
        if self.column is None:
            raise BadRowError(f"it has none of the columns {', '.join(PROMPT_COLUMNS)}; name another with --column")
        others = {key: value for key, value in fields.items() if key != self.column}
        domain = _first_word(others, _DOMAIN_COLUMNS) or self._domain
        return [BenchPrompt(name, domain, _prompt(fields, self.column), _as_text(others.get("answer")))]


def _own_kind(fields: Mapping[str, Any]) -> Kind | None:
    """The kind with columns of its own that a row belongs to; None if there is none."""
    if isinstance(fields.get("turns"), list) and prompt_column(fields) is None:
        return "spec-bench"
    if "prompt" in fields and "canonical_solution" in fields:
        return "humaneval"
    if "question" in fields and "####" in str(fields.get("answer")):
        return "gsm8k"
    return None


def prompt_column(names: Collection[str]) -> str | None:
    """The first of `PROMPT_COLUMNS` that is there."""
    return next((name for name in PROMPT_COLUMNS if name in names), None)


def _turns(fields: Mapping[str, Any], name: str) -> list[BenchPrompt]:
    turns = fields.get("turns")
    if not isinstance(turns, list) or not turns:
        raise BadRowError("its turns are missing, or not an array, or empty")
    named = {f"turn {number}": turn for number, turn in enumerate(turns, start=1)}
    texts = [_prompt(named, turn) for turn in named]
    domain = _first_word(fields, _DOMAIN_COLUMNS) or "spec-bench"
    return [
        BenchPrompt(f"{name}/{number}", domain, text, before=tuple(texts[: number - 1]))
        for number, text in enumerate(texts, start=1)
    ]


def _prompt(fields: Mapping[str, Any], column: str) -> str:
    """The prompt unchanged: blanks at both ends of code that is to be continued matter."""
    value = fields.get(column)
    if value is None:
        raise BadRowError(f"its {column} is missing")
    if not isinstance(value, str):
        raise BadRowError(f"its {column} is not a string")
    if not value.strip():
        raise BadRowError(f"its {column} is empty")
    return value


def _first_word(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of these fields that holds a string or a whole number, as text."""
    values = (fields.get(name) for name in names)
    words = (str(value).strip() for value in values if isinstance(value, str | int) and not isinstance(value, bool))
    return next((word for word in words if word), "")


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
