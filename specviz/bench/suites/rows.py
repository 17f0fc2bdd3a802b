r"""The rows of a file of prompts, each with the line where it begins: JSON lines, CSV or Parquet.

Rows are read one after another, so that a file of any size is never in memory as a whole. The readers of pandas give
no line numbers and lose a whole chunk for one bad row, so `json` and `csv` parse the text here, and pyarrow Parquet.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, BinaryIO, NamedTuple, cast

from specviz.core.errors import SettingsError
from specviz.core.kinds import GZIP, LINES, PARQUET, START_BYTES, encoding_of, kind_of
from specviz.core.reading import Wanted, refuse_other

#: Characters that a line may have. A longer one is not a prompt that a model could read.
MAX_LINE = 1_000_000
_TOO_LONG = f"the line is longer than {MAX_LINE:,} characters"

PROMPTS = Wanted("a file of prompts", SettingsError, "Name a file of prompts: JSON lines, CSV or Parquet.", LINES)
#: Stands for bytes that are not in the encoding. Decoders never give half of a surrogate pair, so no text has it.
_UNREADABLE = "\udcff"
_BATCH = 256


class Line(NamedTuple):
    """A line of a text file: its number from 1, its text with the line end, why it cannot be used ("" if it can)."""

    number: int
    text: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A row of a file.

    Attributes:
        line: the number of the line where it begins, or of the row in a Parquet file; from 1.
        fields: by name in lower case; of names that differ only in their case the first.
        why: why it cannot be used; empty where it can.
    """

    line: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""


def is_parquet(stream: BinaryIO) -> bool:
    """Whether the first bytes of a seekable stream are those of a Parquet file."""
    return kind_of(_start(stream, START_BYTES)) == PARQUET


def parquet_rows(stream: BinaryIO, wanted: Collection[str]) -> tuple[list[str], Iterator[PromptRow]]:
    """The names of all columns, and the rows with the columns that are `wanted` (in lower case), batch by batch.

    Raises:
        SettingsError: the file is damaged; also while rows are read.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    @contextmanager
    def damage() -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, ValueError, OverflowError) as exc:
            raise SettingsError(f"The Parquet file is damaged: {exc}.", "Fetch it again.") from exc

    def rows() -> Iterator[PromptRow]:
        number = count(1)
        columns = [name for name in names if name.strip().lower() in wanted]
        with damage():
            for batch in file.iter_batches(_BATCH, columns=columns):
                for fields in batch.to_pylist():
                    yield PromptRow(next(number), _by_lower_name(fields.items()))

    with damage():
        file = ParquetFile(stream)
        names: list[str] = file.schema_arrow.names
    return names, rows()


def json_rows(lines: Iterator[Line]) -> Iterator[PromptRow]:
    """One object per line; blank lines are left out.

    Raises:
        SettingsError: the file is one JSON array.
    """
    filled = (line for line in lines if line.why or line.text.strip())
    for position, line in enumerate(filled):
        if position == 0 and re.match(r"\s*\[\s*(\{|\]?\s*$)", line.text):
            raise SettingsError(
                "The file is one JSON array, and one JSON object per line is needed.",
                "Turn it into lines first, for example with: jq -c '.[]' in.json > out.jsonl",
            )
        yield _json_row(line)


def _json_row(line: Line) -> PromptRow:
    if line.why:
        return PromptRow(line.number, why=line.why)
    try:
        # Tabs and NULs inside a string are accepted: the meaning is clear.
        value = json.loads(line.text, strict=False)
    except RecursionError:
        return PromptRow(line.number, why="its JSON is nested too deeply")
    except ValueError as exc:
        return PromptRow(line.number, why=_not_json(line.text, exc))
    if not isinstance(value, dict):
        return PromptRow(line.number, why=f"it is not a JSON object but {_KINDS[type(value)]}")
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
        return "it is not JSON: it has a NUL between its characters, as UTF-16 has; name the encoding with --encoding"
    if not isinstance(error, json.JSONDecodeError):
        return "it is not JSON: a number has too many digits"
    return f"it is not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.colno}"


def csv_rows(lines: Iterator[Line]) -> tuple[list[str], Iterator[PromptRow]]:
    """The column names of the first line, and the rows below it; blank lines are left out.

    Columns are separated by what the first line has most of: commas, semicolons or tabs.

    Raises:
        SettingsError: the line with the names cannot be read.
    """
    first = next((line for line in lines if line.why or line.text.strip()), None)
    if first is None:
        return [], iter(())
    table = _csv_table(chain([first], lines), delimiter=max(",;\t", key=first.text.count))
    number, header, why = next(table)
    if why:
        raise SettingsError(
            f"Line {number}, which should name the columns, cannot be read: {why}.",
            "The first line of a CSV file must give a name to each column.",
        )
    return header, (_csv_row(number, header, values, why) for number, values, why in table)


def _csv_table(lines: Iterator[Line], delimiter: str) -> Iterator[tuple[int, list[str], str]]:
    """The first line of each row, its values, and why it cannot be used; blank rows are left out."""
    row: list[Line] = []  # the lines of the current row

    def feed() -> Iterator[str]:
        for line in lines:
            row.append(line)
            # The start of a line that is too long may open a quote; an empty line leaves the rows that follow alone.
            yield "\n" if line.why == _TOO_LONG else line.text

    # `strict`, or a quote that is never closed would swallow all rows that follow without a word.
    table = csv.reader(feed(), delimiter=delimiter, strict=True)
    while True:
        row.clear()
        values, why = [], ""
        try:
            values = next(table)
        except StopIteration:
            return
        except csv.Error as exc:
            why = _not_csv(exc) + (f" (until line {row[-1].number})" if len(row) > 1 else "")
        why = next((line.why for line in row if line.why), why)
        if why or any(line.text.strip() for line in row):
            yield row[0].number, values, why


def _not_csv(error: csv.Error) -> str:
    if "unexpected end of data" in str(error):
        return "a quote is opened and never closed, so everything after it belongs to it"
    if "field larger than" in str(error):
        return f"a field is longer than {csv.field_size_limit():,} characters, or its quote is never closed"
    return f"it is not CSV: {error}"


def _csv_row(number: int, header: list[str], values: list[str], why: str) -> PromptRow:
    if not why and len(values) != len(header):
        fields = "1 field" if len(values) == 1 else f"{len(values)} fields"
        why = f"it has {fields}, and the first line names {len(header)}"
    return PromptRow(number, {} if why else _by_lower_name(zip(header, values, strict=True)), why)


def _by_lower_name(items: Iterable[tuple[str, Any]]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for name, value in items:
        found.setdefault(name.strip().lower(), value)
    return found


@contextmanager
def lines_of(stream: BinaryIO, encoding: str | None, *, newline: str) -> Iterator[Iterator[Line]]:
    r"""The lines of a seekable stream, packed with gzip or not, from its start; it stays open.

    Args:
        encoding: None is found out from the first bytes: UTF-8, UTF-16 or UTF-32.
        newline: "\n" to end lines there alone, "" also at "\r" and "\r\n".

    Raises:
        SettingsError: no such encoding; or, while lines are read: a damaged gzip file, a disk that fails.
    """
    packed = kind_of(_start(stream, START_BYTES)) == GZIP
    plain = cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb")) if packed else stream
    with _read_errors(encoding or "utf-8"):
        chosen = _encoding(plain, encoding)
        try:
            text = io.TextIOWrapper(plain, chosen, errors=_MARK_UNREADABLE, newline=newline)
        except (LookupError, ValueError) as exc:
            raise SettingsError(
                f"There is no text encoding called {encoding!r}.", "Common ones are utf-8, utf-16, cp1252 and gbk."
            ) from exc
        try:
            yield _lines(text, chosen)
        finally:
            text.detach()  # else it would close the stream, which belongs to the caller


def _encoding(stream: BinaryIO, wanted: str | None) -> str:
    if wanted is None:
        start = _start(stream, START_BYTES)
        refuse_other(start, "It", PROMPTS)
        return encoding_of(start)
    # A mark is not part of the text, whether or not the name of the encoding says that there is one.
    return "utf-8-sig" if wanted.lower().replace("_", "-") in ("utf-8", "utf8") else wanted


def _start(stream: BinaryIO, size: int) -> bytes:
    stream.seek(0)
    start = stream.read(size)
    stream.seek(0)
    return start


def _lines(text: io.TextIOWrapper, encoding: str) -> Iterator[Line]:
    name = encoding.removesuffix("-sig").upper()
    unreadable = f"it has bytes that are not {name}; if the file is in another encoding, name it with --encoding"
    for number in count(1):
        line = text.readline(MAX_LINE + 2)
        if not line:
            return
        if number == 1:
            line = line.removeprefix("\ufeff")  # the encodings utf-16-le and utf-16-be leave it in
        if len(line.rstrip("\r\n")) > MAX_LINE:
            rest = line
            while rest and not rest.endswith(("\n", "\r")):
                rest = text.readline(MAX_LINE)
            yield Line(number, line[:80], _TOO_LONG)
        else:
            yield Line(number, line, unreadable if _UNREADABLE in line else "")


@contextmanager
def _read_errors(encoding: str) -> Iterator[None]:
    """What reading a text file may raise, as errors with a remedy."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as exc:
        raise SettingsError(
            f"The gzip file is cut or damaged ({exc}).", "Fetch it again, or unpack what is left of it with gunzip."
        ) from exc
    except UnicodeError as exc:
        raise SettingsError(
            f"The file cannot be read as {encoding}: {exc}.",
            "Name another encoding with --encoding; UTF-16 without a byte-order mark is utf-16-le or utf-16-be.",
        ) from exc
    except OSError as exc:
        raise SettingsError(f"The file cannot be read: {exc.strerror or exc}.", "Copy it to another disk.") from exc


def _mark_unreadable(error: UnicodeError) -> tuple[str, int]:
    """Replace bytes that cannot be decoded by a mark, so that the lines around them can be read."""
    if isinstance(error, UnicodeDecodeError):
        return _UNREADABLE, error.end
    raise error


_MARK_UNREADABLE = "specviz-mark-unreadable"
codecs.register_error(_MARK_UNREADABLE, _mark_unreadable)
