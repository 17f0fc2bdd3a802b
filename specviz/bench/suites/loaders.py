r"""Prompt suites from files: GSM8K, HumanEval, Spec-Bench, and any JSON lines, CSV or Parquet with a column of prompts.

A text file is read line by line, packed with gzip or not, in UTF-8, in UTF-16 or UTF-32 with a byte-order mark, or in
the encoding that is named. A row that cannot be used is listed with its line and the reason.

- `gsm8k`: question and answer; the text after "####" is the answer.
- `humaneval`: task_id, prompt (code to continue) and canonical_solution.
- `spec-bench`: question_id, category and turns. Each turn is a prompt of its own, called 81/1, 81/2: the turns before
  it and the target's own answers to them come before it.
- `jsonl`, `csv`, `parquet`: any with a prompt column; domain, id and answer are taken from columns with such names.
  Without an id a prompt is called by its line, without a domain it is filed under the name of its file.

The first three come as JSON lines or Parquet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, get_args

from specviz.bench.suites.formats import (
    GENERAL,
    KNOWN_COLUMNS,
    PROMPT_COLUMNS,
    BadRowError,
    Kind,
    PromptReader,
    prompt_column,
)
from specviz.bench.suites.rows import PROMPTS, PromptRow, csv_rows, is_parquet, json_rows, lines_of, parquet_rows
from specviz.bench.suites.suite import BenchPrompt, Suite
from specviz.core.errors import SettingsError
from specviz.core.kinds import kind_at

__all__ = ["KINDS", "MAX_BAD", "MAX_PROMPTS", "BadRow", "Kind", "Loaded", "load", "read_suite", "refuse_bad"]

KINDS: tuple[Kind, ...] = get_args(Kind)
#: Prompts kept where no limit is given; a sweep over more would take days.
MAX_PROMPTS = 10_000
#: A file with more bad rows than this is not a file of prompts, or is read in a wrong way.
MAX_BAD = 10_000
_LISTED = 10


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was left out.

    Attributes:
        line: where it begins in the file, from 1; in a Parquet file the number of the row.
        why: the reason, in words that follow "line 7:".
    """

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file holds: at least one prompt, and the rows that cannot be used. `unit` is what rows are counted in."""

    suite: Suite
    bad: tuple[BadRow, ...]
    kind: Kind
    unit: str = "line"


def read_suite(
    path: Path,
    *,
    kind: Kind | None = None,
    column: str | None = None,
    encoding: str | None = None,
    limit: int | None = None,
) -> Loaded:
    """Read prompts from a file; the suite gets the file's name without its endings.

    Args:
        kind: None is found out from the name's ending, the first bytes and the first row that can be read.
        column: the column with the prompt; None is the first of prompt, question, text, instruction, input.
        encoding: None is UTF-8, or what a byte-order mark at the start of the file says.
        limit: stop after so many prompts; None reads all, up to `MAX_PROMPTS`.

    Raises:
        SettingsError: no such file or encoding, a damaged file, one without a prompt, or with too many.
    """
    try:
        if path.exists() and not path.is_file():  # it has to be seekable
            raise PROMPTS.refusal(path, kind_at(path))
        stream = path.open("rb")
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        raise PROMPTS.unreadable(path, exc) from exc
    with stream:
        return load(stream, path.name, kind=kind, column=column, encoding=encoding, limit=limit)


def load(
    stream: BinaryIO,
    name: str,
    *,
    kind: Kind | None = None,
    column: str | None = None,
    encoding: str | None = None,
    limit: int | None = None,
) -> Loaded:
    """Read prompts from an open, seekable file, such as an upload; otherwise as `read_suite`.

    Args:
        name: the file's name with its endings.

    Raises:
        SettingsError: as `read_suite`.
    """
    if kind is not None and kind not in KINDS:
        raise SettingsError(f"There is no format of prompt files called {kind!r}.", f"There are: {', '.join(KINDS)}.")
    if limit is not None and limit < 1:
        raise SettingsError(f"The limit of prompts must be at least 1, not {limit}.", "Leave it out to have them all.")
    path = Path(name)
    inner = path.with_suffix("") if path.suffix.lower() in (".gz", ".gzip") else path
    try:
        with _rows(stream, inner.suffix.lower(), kind, column, encoding) as (container, rows):
            reader = PromptReader("csv" if container == "csv" else kind, column, inner.stem, container)
            prompts, bad = _collect(rows, reader, limit, unit := "row" if container == "parquet" else "line")
        if not prompts:
            raise _nothing(bad, container, unit)
    except SettingsError as exc:
        raise SettingsError(f"{name}: {exc.message}", exc.remedy) from exc
    assert reader.kind is not None  # a row has been read
    return Loaded(Suite(inner.stem, tuple(prompts)), tuple(bad), reader.kind, unit)


@contextmanager
def _rows(
    stream: BinaryIO, ending: str, kind: Kind | None, column: str | None, encoding: str | None
) -> Iterator[tuple[Kind, Iterable[PromptRow]]]:
    """How the file is written (jsonl, csv or parquet), and its rows."""
    if is_parquet(stream):
        if kind in ("jsonl", "csv"):
            raise SettingsError(f"It is a Parquet file, not {kind}.", "Leave out the format.")
        wanted = (column or "").strip().lower()
        names, rows = parquet_rows(stream, {*KNOWN_COLUMNS, wanted})
        if kind in GENERAL and "turns" not in names:
            _check_columns(names, column)
        yield "parquet", rows
        return
    if kind == "parquet":
        raise SettingsError("It is not a Parquet file.", "Leave out the format.")
    is_csv = kind == "csv" or (kind is None and ending in (".csv", ".tsv"))
    with lines_of(stream, encoding, newline="" if is_csv else "\n") as lines:
        if not is_csv:
            yield "jsonl", json_rows(lines)
            return
        names, rows = csv_rows(lines)
        _check_columns(names, column)
        yield "csv", rows


def _check_columns(names: Sequence[str], column: str | None) -> None:
    """Refuse a table without a column of prompts at once: all of its rows have the same columns."""
    there = {name.strip().lower() for name in names}
    if not names or (prompt_column(there) if column is None else column.strip().lower() in there):
        return
    wanted = repr(column) if column is not None else f"any of {', '.join(PROMPT_COLUMNS)}"
    shown = ", ".join(repr(name if len(name) <= 40 else f"{name[:39]}…") for name in names[:_LISTED])
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    raise SettingsError(
        f"It has no column called {wanted}; its columns are {shown}{more}.",
        "Name the column with the prompts: --column. The first line of a CSV file must name the columns.",
    )


def _collect(
    rows: Iterable[PromptRow], reader: PromptReader, limit: int | None, unit: str
) -> tuple[list[BenchPrompt], list[BadRow]]:
    prompts: dict[str, BenchPrompt] = {}
    bad: list[BadRow] = []
    for row in rows:
        try:
            for prompt in reader.prompts(row):
                _keep(prompt, row.line, prompts, limit)
        except BadRowError as exc:
            bad.append(BadRow(row.line, str(exc)))
        if len(prompts) == limit:
            break
        if len(bad) > MAX_BAD:
            raise SettingsError(
                f"It has more than {MAX_BAD:,} bad rows: {_listed(bad, unit)}.",
                f"Give its --format ({', '.join(KINDS)}), its --column or its --encoding.",
            )
    return list(prompts.values()), bad


def _keep(prompt: BenchPrompt, line: int, prompts: dict[str, BenchPrompt], limit: int | None) -> None:
    """Add a prompt while there is room; an id that is taken is followed by the line."""
    if limit is not None and len(prompts) == limit:
        return
    if len(prompts) == MAX_PROMPTS and limit is None:
        raise SettingsError(
            f"It has more than {MAX_PROMPTS:,} prompts.", f"Take the first of them, for example --limit {MAX_PROMPTS}."
        )
    while prompt.id in prompts:
        prompt = replace(prompt, id=f"{prompt.id}@{line}")
    prompts[prompt.id] = prompt


def refuse_bad(loaded: Loaded) -> None:
    """Raise if there are bad rows, for callers that do not skip them.

    Raises:
        SettingsError: lists the first ten.
    """
    if loaded.bad:
        count = "1 bad row" if len(loaded.bad) == 1 else f"{len(loaded.bad):,} bad rows"
        raise SettingsError(
            f"{loaded.suite.name} has {count}: {_listed(loaded.bad, loaded.unit)}.",
            f"Correct them, or skip them with --skip-bad; prompts that can be read: {len(loaded.suite.prompts):,}.",
        )


def _nothing(bad: Sequence[BadRow], container: Kind, unit: str) -> SettingsError:
    if not bad:
        what = (
            "It has no rows below the names of its columns." if container == "csv" else "It is empty: it has no rows."
        )
        return SettingsError(what, "Name a file that holds at least one prompt.")
    needed = {"csv": "a first line that names the columns", "parquet": "a column of strings"}
    return SettingsError(
        f"None of its rows can be used: {_listed(bad, unit)}.",
        f"It needs {needed.get(container, 'one JSON object per line')}. If it has that, give its --format "
        f"({', '.join(KINDS)}), its --column or its --encoding.",
    )


def _listed(bad: Sequence[BadRow], unit: str) -> str:
    first = "; ".join(f"{unit} {row.line}: {row.why}" for row in bad[:_LISTED])
    return first + (f"; and {len(bad) - _LISTED:,} more" if len(bad) > _LISTED else "")
