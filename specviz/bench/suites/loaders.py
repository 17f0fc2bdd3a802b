r"""Prompt suites from files: GSM8K, HumanEval, Spec-Bench, and any JSON lines or CSV with a column of prompts.

A file is read line by line, packed with gzip or not, in UTF-8, in UTF-16 with a byte order mark, or in the encoding
that is named. A row that cannot be used is listed with its line and a reason; none is left out in silence.

- `gsm8k`: JSON lines with question and answer; what stands after "####" is the answer.
- `humaneval`: JSON lines with task_id, prompt (code to go on with) and canonical_solution.
- `spec-bench`: JSON lines with question_id, category and turns. Each turn is a prompt of its own, called 81/1, 81/2:
  the turns before it and the target's own answers to them stand before it.
- `jsonl`, `csv`: any with a prompt column; domain, id and answer are taken from columns of such names where there are
  any. Without an id a prompt is called by its line, without a domain it is filed under the name of its file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, get_args

from specviz.bench.suites.formats import PROMPT_COLUMNS, BadRowError, Kind, PromptReader, prompt_column
from specviz.bench.suites.rows import PromptRow, csv_rows, json_rows
from specviz.bench.suites.suite import BenchPrompt, Suite
from specviz.bench.suites.text import lines_of
from specviz.core.errors import SettingsError

__all__ = ["KINDS", "MAX_BAD", "MAX_PROMPTS", "BadRow", "Kind", "Loaded", "load", "read_suite", "refuse_bad"]

KINDS: tuple[Kind, ...] = get_args(Kind)
#: Prompts kept where no limit is given; a sweep over more would take days.
MAX_PROMPTS = 10_000
#: A file with more bad rows than this is no file of prompts, or is read in a wrong way.
MAX_BAD = 10_000

_LISTED = 10


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was left out.

    Attributes:
        line: where it begins in the file, from 1.
        why: the reason, in words that follow "line 7:".
    """

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file holds: at least one prompt, and the rows that cannot be used."""

    suite: Suite
    bad: tuple[BadRow, ...]
    kind: Kind


def read_suite(
    path: Path,
    *,
    kind: Kind | None = None,
    column: str | None = None,
    encoding: str | None = None,
    limit: int | None = None,
) -> Loaded:
    """Read prompts from a file; the suite is called as the file is, without its endings.

    Args:
        kind: None is found out from the name's ending and the first row that can be read.
        column: the column with the prompt; None is the first of prompt, question, text, instruction, input.
        encoding: None is UTF-8, or what a byte order mark at the start of the file says.
        limit: stop after so many prompts; None reads all, if these are not more than `MAX_PROMPTS`.

    Raises:
        SettingsError: no such file or encoding, a damaged file, one without a prompt, or with too many.
    """
    try:
        if not path.is_file():
            what = "is a folder, not a file" if path.is_dir() else "is not there, or is no plain file"
            raise SettingsError(f"{path} {what}.", "Name a file of prompts: JSON lines or CSV, packed or not.")
        stream = path.open("rb")
    except OSError as exc:
        raise SettingsError(f"{path} cannot be opened: {exc.strerror or exc}.", "Look at its permissions.") from exc
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
    """Read prompts from an open, seekable file, such as one that was sent to a page; as `read_suite` otherwise.

    Args:
        name: the file's name with its endings.

    Raises:
        SettingsError: as `read_suite`.
    """
    _check(kind, limit)
    stem, ending = _parts(name)
    is_csv = kind == "csv" or (kind is None and ending in (".csv", ".tsv"))
    with _naming(name):
        reader = PromptReader("csv" if is_csv else kind, column, domain=stem)
        with lines_of(stream, encoding, newline="" if is_csv else "\n") as lines:
            rows = _with_prompts(csv_rows(lines), column) if is_csv else json_rows(lines)
            prompts, bad = _collect(rows, reader, limit)
        if not prompts:
            raise _nothing(bad, is_csv)
        assert reader.kind is not None  # a row has been read
        return Loaded(Suite(stem, tuple(prompts)), tuple(bad), reader.kind)


def refuse_bad(loaded: Loaded) -> None:
    """Raise where there are bad rows, for callers that were not asked to skip them.

    Raises:
        SettingsError: lists the first ten.
    """
    if loaded.bad:
        raise SettingsError(
            f"{loaded.suite.name} has {_count(loaded.bad)}: {_listed(loaded.bad)}.",
            f"Mend them, or skip them with --skip-bad; prompts that can be read: {len(loaded.suite.prompts):,}.",
        )


def _collect(
    rows: Iterator[PromptRow], reader: PromptReader, limit: int | None
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
                f"It has more than {MAX_BAD:,} bad rows: {_listed(bad)}.",
                f"Give its --format ({', '.join(KINDS)}), its --column or its --encoding.",
            )
    return list(prompts.values()), bad


def _keep(prompt: BenchPrompt, line: int, prompts: dict[str, BenchPrompt], limit: int | None) -> None:
    """Add a prompt while there is room; one whose id is taken is also called by its line."""
    if limit is not None and len(prompts) == limit:
        return
    if len(prompts) == MAX_PROMPTS and limit is None:
        raise SettingsError(
            f"It has more than {MAX_PROMPTS:,} prompts.", f"Take the first of them, for example --limit {MAX_PROMPTS}."
        )
    while prompt.id in prompts:
        prompt = replace(prompt, id=f"{prompt.id}@{line}")
    prompts[prompt.id] = prompt


def _with_prompts(rows: Iterator[PromptRow], column: str | None) -> Iterator[PromptRow]:
    """The rows of a CSV, once it is seen that there is a column of prompts: all rows have the same."""
    for row in rows:
        if not row.why and not _has_prompts(row, column):
            wanted = repr(column) if column is not None else f"any of {', '.join(PROMPT_COLUMNS)}"
            raise SettingsError(
                f"It has no column called {wanted}; its columns are {_cut_names(row)}.",
                "Name the one with the prompts: --column. The first line of the file must name the columns.",
            )
        yield row


def _has_prompts(row: PromptRow, column: str | None) -> bool:
    return (column.strip().lower() in row.fields) if column is not None else prompt_column(row.fields) is not None


def _cut_names(row: PromptRow) -> str:
    names = [repr(name if len(name) <= 40 else f"{name[:39]}…") for name in row.fields]
    return ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def _nothing(bad: list[BadRow], is_csv: bool) -> SettingsError:
    if not bad:
        what = "It has no rows below the names of its columns." if is_csv else "It is empty: it has no rows."
        return SettingsError(what, "Name a file that holds at least one prompt.")
    needed = "a first line that names the columns" if is_csv else "one JSON object per line"
    return SettingsError(
        f"None of its rows can be used: {_listed(bad)}.",
        f"It needs {needed}. If it has that, give its --format ({', '.join(KINDS)}), its --column or its --encoding.",
    )


def _count(bad: tuple[BadRow, ...]) -> str:
    return "1 bad row" if len(bad) == 1 else f"{len(bad):,} bad rows"


def _listed(bad: list[BadRow] | tuple[BadRow, ...]) -> str:
    first = "; ".join(f"line {row.line}: {row.why}" for row in bad[:_LISTED])
    return first + (f"; and {len(bad) - _LISTED:,} more" if len(bad) > _LISTED else "")


def _parts(name: str) -> tuple[str, str]:
    """The name without its endings, and the ending that tells the kind."""
    path = Path(name)
    inner = path.with_suffix("") if path.suffix.lower() in (".gz", ".gzip") else path
    return inner.stem, inner.suffix.lower()


def _check(kind: str | None, limit: int | None) -> None:
    if kind is not None and kind not in KINDS:
        raise SettingsError(f"There is no format of prompt files called {kind!r}.", f"There are: {', '.join(KINDS)}.")
    if limit is not None and limit < 1:
        raise SettingsError(f"The limit of prompts must be at least 1, not {limit}.", "Leave it out to have them all.")


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Put the file's name in front of what is wrong with it."""
    try:
        yield
    except SettingsError as exc:
        raise SettingsError(f"{name}: {exc.message}", exc.remedy) from exc
