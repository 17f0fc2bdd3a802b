"""A recording of a run: JSON lines, a header first, then its events.

Events go to the file in batches, at the latest with the first round that ends a second after the last batch. A process
that is killed loses what came since then; what is in the file can be read, and a truncated last line is ignored.
"""

from __future__ import annotations

import codecs
import io
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import msgspec

from specviz.core.errors import TraceError
from specviz.core.event_json import from_json, to_json
from specviz.core.events import Done, Error, Event, Metrics, RunStarted
from specviz.core.kinds import EMPTY, JSON, TRACE, encoding_of
from specviz.core.provenance import machine, versions
from specviz.core.reading import Wanted, json_of, read_bytes
from specviz.core.secrets import NO_SECRETS, Secrets
from specviz.core.settings import Settings
from specviz.record.claim import claimed

SCHEMA = 1
#: How long complete rounds wait for the next batch, in seconds.
BATCH_S = 1.0
#: A round at K = 16 takes about 50 kB, the longest prompt a few MB.
MAX_LINE_BYTES = 16_000_000
_WANTED = Wanted(
    "a trace", TraceError, "Give a trace that specviz wrote.", (EMPTY, TRACE, JSON), largest_bytes=256_000_000
)


@dataclass(frozen=True, slots=True)
class Recording:
    """The contents of a trace.

    Attributes:
        header: schema, versions, machine, settings.
        events: in order.
        complete: whether it ends in `done` or `error`.
    """

    header: dict[str, Any]
    events: tuple[Event, ...]

    @property
    def complete(self) -> bool:
        """Whether the recording contains the end of the run."""
        return bool(self.events) and isinstance(self.events[-1], Done | Error)


def header(settings: Settings) -> dict[str, Any]:
    """The first line of a trace: the data needed to understand and repeat the run. Never contains a key."""
    return {
        "type": "header",
        "schema": SCHEMA,
        "created_at": time.time(),
        "versions": versions(),
        "machine": machine() | {"cores": os.cpu_count()},
        "settings": settings.to_json(),
    }


def line(data: dict[str, Any], secrets: Secrets = NO_SECRETS) -> str:
    """One line of JSON with its newline and without the secrets."""
    return _line(data, secrets).decode()


def _line(data: dict[str, Any], secrets: Secrets) -> bytes:
    text = _encode(data)
    return (secrets.strike_json(text.decode()).encode() if secrets else text) + b"\n"


#: For data of JSON's own types, as `to_json` gives it.
_encode = msgspec.json.Encoder().encode


def without(event: Event, secrets: Secrets) -> Event:
    """The event itself, or a copy in which the secrets in its texts are replaced."""
    text = _encode(to_json(event)).decode()
    struck = secrets.strike_json(text)
    return event if struck == text else from_json(msgspec.json.decode(struck))


def lines(settings: Settings, events: Iterable[Event], secrets: Secrets = NO_SECRETS) -> Iterator[str]:
    """A complete trace, line by line."""
    yield line(header(settings), secrets)
    for event in events:
        yield line(to_json(event), secrets)


class TraceWriter:
    """Writes a trace during the run; a context manager.

    Args:
        path: the file; its folder is created.
        settings: for the header.
        secrets: to be replaced in the trace, see `specviz.setup.environment.secrets`.
        clock: current time in seconds.

    Raises:
        TraceError: the file cannot be written.
        RunError: somebody else writes it.
    """

    def __init__(
        self,
        path: Path,
        settings: Settings,
        secrets: Secrets = NO_SECRETS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._settings, self._secrets, self._clock = path, settings, secrets, clock
        self._file: BinaryIO | None = None
        self._waiting: list[Event] = []
        self._written_at = 0.0
        self._claim = ExitStack()

    def __enter__(self) -> TraceWriter:
        try:
            self._claim.enter_context(claimed(self._path, "a run that records its trace"))
            self._file = self._path.open("wb", buffering=0)
            self._write([header(self._settings)])
        except OSError as exc:
            if self._file is not None:
                with suppress(OSError):
                    self._file.close()
            self._claim.close()
            raise self._failed(exc) from exc
        return self

    def write(self, event: Event) -> None:
        """Append one event; complete rounds go to the file once a second."""
        if self._file is None:
            raise ValueError("the trace is not open: use it in a with statement")
        self._waiting.append(event)
        late = isinstance(event, Metrics) and self._clock() - self._written_at >= BATCH_S
        if late or isinstance(event, RunStarted | Done | Error):
            try:
                self._write_batch()
            except OSError as exc:
                raise self._failed(exc) from exc

    def _write_batch(self) -> None:
        # Encoded together: between two passes of a model, which empty the processor's caches, it takes twice as long.
        batch, self._waiting = self._waiting, []
        self._write(map(to_json, batch))

    def _write(self, lines: Iterable[dict[str, Any]]) -> None:
        assert self._file is not None
        text, self._written_at = b"".join(_line(data, self._secrets) for data in lines), self._clock()
        while text:
            text = text[self._file.write(text) :]

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._file is None:
            return
        try:
            with self._file:
                self._write_batch()
        except OSError as exc:
            # A full disk failed in the write before, too.
            if kind is None:
                raise self._failed(exc) from exc
        finally:
            self._claim.close()

    def _failed(self, exc: OSError) -> TraceError:
        return TraceError(
            f"Cannot write the trace {self._path}: {exc.strerror or exc}.", "Free some space, or choose another file."
        )


def read(path: Path) -> Recording:
    """Read a trace file, in UTF-8 or as an editor has saved it again: in UTF-16, with a byte-order mark or CRLF.

    Raises:
        TraceError: no such file, not a trace, two of them, a newer schema, or damaged before its last line.
    """
    data = read_bytes(path, _WANTED)
    encoding = encoding_of(data)
    if encoding != "utf-8-sig":
        try:
            # The file of a run that was cut may end inside a character.
            data = codecs.getincrementaldecoder(encoding)().decode(data).encode()
        except UnicodeError as exc:
            raise TraceError(f"{path} is not {encoding.upper()} text: {exc}.", "Save it as UTF-8.") from exc
    return parse(io.BytesIO(data.removeprefix(codecs.BOM_UTF8)))


def parse(source: Iterable[str | bytes]) -> Recording:
    """Read a trace from its lines; the last line may be truncated.

    Raises:
        TraceError: see `read`.
    """
    encoded = (text.encode(errors="surrogatepass") if isinstance(text, str) else text for text in source)
    raw = [(number, text) for number, text in enumerate(encoded, 1) if text.strip()]
    if not raw:
        raise TraceError("The trace is empty.", "The run was cut before its first line was written.")
    loaded = [(number, _load(text, number, last=number == raw[-1][0])) for number, text in raw]
    head = loaded[0][1]
    if head is None or head.get("type") != "header":
        raise TraceError("This is not a specviz trace: the first line is not a header.", "Give a .jsonl trace file.")
    if type(head.get("schema")) is not int or head["schema"] > SCHEMA:
        raise TraceError(
            f"The trace has schema {head.get('schema')!r}; this specviz reads up to {SCHEMA}.", "Update it."
        )
    return Recording(head, tuple(_event(data, number) for number, data in loaded[1:] if data is not None))


def _event(data: Mapping[str, Any], number: int) -> Event:
    if data.get("type") == "header":
        raise TraceError(
            f"The file holds more than one trace: the second begins at line {number}.",
            "Split it before that line.",
        )
    try:
        return from_json(data)
    except TraceError as exc:
        raise TraceError(f"Line {number} of the trace: {exc.message}", exc.remedy) from exc


def _load(text: bytes, number: int, last: bool) -> dict[str, Any] | None:
    if len(text) > MAX_LINE_BYTES:
        raise TraceError(
            f"Line {number} of the trace has {len(text):,} bytes; at most {MAX_LINE_BYTES:,} are read.",
            "Give a trace that specviz wrote.",
        )
    try:
        data = json_of(text)
    except ValueError as exc:
        if last and not text.endswith(b"\n"):
            return None
        raise TraceError(f"Line {number} of the trace is damaged: {exc}.", "Cut the file before that line.") from exc
    if not isinstance(data, dict):
        raise TraceError(f"Line {number} of the trace is not an object.", "Give a .jsonl trace file.")
    return data
