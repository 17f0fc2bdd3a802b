"""The rows of a file with prompts: JSON lines or CSV, each with the line where it begins."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from specviz.bench.suites.text import Line
from specviz.core.errors import SettingsError


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A row of a file.

    Attributes:
        line: number of the line where it begins, from 1.
        fields: by name in lower case; of names that differ only in their case the first.
        why: why it cannot be used; empty where it can.
    """

    line: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""


def json_rows(lines: Iterator[Line]) -> Iterator[PromptRow]:
    """One object per line; blank lines are left out.

    Raises:
        SettingsError: the file is one JSON array.
    """
    filled = (line for line in lines if line.why or line.text.strip())
    for count, line in enumerate(filled):
        if count == 0 and _opens_an_array(line.text):
            raise SettingsError(
                "The file is one JSON array; what is read here is one JSON object per line.",
                "Turn it into lines first, for example with: jq -c '.[]' in.json > out.jsonl",
            )
        yield _json_row(line)


def csv_rows(lines: Iterator[Line]) -> Iterator[PromptRow]:
    """Rows under a first line that names the columns, parted by commas, semicolons or tabs; blank lines are left out.

    Raises:
        SettingsError: the line with the names cannot be read.
    """
    first = next((line for line in lines if line.why or line.text.strip()), None)
    if first is None:
        return
    feed = _Feed(chain([first], lines))
    # `strict`, or a quote that is never closed would silently swallow all rows that follow.
    table = csv.reader(feed, delimiter=max(",;\t", key=first.text.count), strict=True)
    header = _header(feed, table)
    while (values := feed.next_row(table)) is not None:
        if not feed.blank:
            yield _csv_row(feed, header, values)


def _json_row(line: Line) -> PromptRow:
    if line.why:
        return PromptRow(line.number, why=line.why)
    try:
        # Tabs and NULs inside a string are forgiven: what is meant is clear.
        value = json.loads(line.text, strict=False)
    except RecursionError:
        return PromptRow(line.number, why="its JSON is nested too deeply")
    except ValueError as exc:
        return PromptRow(line.number, why=_not_json(line.text, exc))
    if not isinstance(value, dict):
        return PromptRow(line.number, why=f"it is no JSON object but {_KINDS[type(value)]}")
    return PromptRow(line.number, _by_lower_name(value.items()))


_KINDS = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def _not_json(text: str, error: ValueError) -> str:
    if "\0" in text:
        return "it is not JSON: it has NULs between its signs, as UTF-16 has; name the encoding with --encoding"
    where = f" at character {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
    what = error.msg if isinstance(error, json.JSONDecodeError) else "a number has too many digits"
    return f"it is not JSON: {what[:1].lower()}{what[1:]}{where}"


def _opens_an_array(text: str) -> bool:
    return re.match(r"\s*\[\s*(\{|\]?\s*$)", text) is not None


def _by_lower_name(items: Iterable[tuple[str, Any]]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for name, value in items:
        found.setdefault(name.strip().lower(), value)
    return found


class _Feed:
    """Lines for `csv.reader`, and what was noticed about those of the current row, which may be several."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self._start()

    def _start(self) -> None:
        self.first = self.last = 0
        self.why = ""
        self.blank = True

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.first, self.last = self.first or line.number, line.number
        self.why = self.why or line.why
        self.blank = self.blank and not line.why and not line.text.strip()
        # Half of a line may open a quote; an empty one leaves the rows that follow alone.
        return "\n" if line.cut else line.text

    def next_row(self, table: Iterator[list[str]]) -> list[str] | None:
        """The values of the next row, none where `why` says that it is bad; None at the end."""
        self._start()
        try:
            return next(table, None)
        except csv.Error as exc:
            self.why = self.why or self._why(exc)
            return []

    def _why(self, error: csv.Error) -> str:
        until = f" (until line {self.last})" if self.last > self.first else ""
        if "unexpected end of data" in str(error):
            return f"a quote is opened and never closed, so all that follows is in it{until}"
        if "field larger than" in str(error):
            return f"a field is longer than {csv.field_size_limit():,} characters, or its quote is never closed{until}"
        return f"it is not CSV: {error}{until}"


def _header(feed: _Feed, table: Iterator[list[str]]) -> list[str]:
    header = feed.next_row(table)
    if header is None or feed.why:
        raise SettingsError(
            f"Line {feed.first}, which should name the columns, cannot be read: {feed.why}.",
            "The first line of a CSV file must give a name to each column.",
        )
    return header


def _csv_row(feed: _Feed, header: Sequence[str], values: list[str]) -> PromptRow:
    if feed.why:
        return PromptRow(feed.first, why=feed.why)
    if len(values) != len(header):
        return PromptRow(feed.first, why=f"it has {_fields(len(values))}, the first line names {len(header)}")
    return PromptRow(feed.first, _by_lower_name(zip(header, values, strict=True)))


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"
