"""A recording of a run: JSON lines, a header first, then its events.

Whatever is recorded up to a crash can be read: lines are flushed after each round and a cut last line is left out.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from specviz import __version__
from specviz.errors import TraceError
from specviz.events import Done, Error, Event, Metrics, RunStarted, from_json, to_json
from specviz.settings import SECRETS, Settings

SCHEMA = 1
_PACKAGES = ("numpy", "mlx", "mlx-lm", "transformers", "tokenizers")


@dataclass(frozen=True, slots=True)
class Recording:
    """A trace that was read.

    Attributes:
        header: schema, versions, machine, settings.
        events: in order.
        complete: whether it ends in `done` or `error`.
    """

    header: dict[str, Any]
    events: tuple[Event, ...]

    @property
    def complete(self) -> bool:
        """Whether the run had ended when the recording did."""
        return bool(self.events) and isinstance(self.events[-1], Done | Error)


def header(settings: Settings) -> dict[str, Any]:
    """The first line of a trace: what is needed to understand and repeat the run. Never a key."""
    return {
        "type": "header",
        "schema": SCHEMA,
        "created_at": time.time(),
        "versions": {"specviz": __version__, "python": platform.python_version()} | _versions(),
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "settings": settings.to_json(),
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def line(data: dict[str, Any]) -> str:
    """One JSON line with its newline. Values of secret variables are struck out, wherever they came from."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for variable in SECRETS:
        secret = os.environ.get(variable, "")
        if len(secret) >= 8:
            # As it stands inside a JSON string.
            text = text.replace(json.dumps(secret, ensure_ascii=False)[1:-1], "[secret]")
    return text + "\n"


def lines(settings: Settings, events: Iterable[Event]) -> Iterator[str]:
    """A whole trace, line by line."""
    yield line(header(settings))
    for event in events:
        yield line(to_json(event))


class TraceWriter:
    """Writes a trace as the run goes; a context manager.

    Raises:
        TraceError: the file cannot be written.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._settings = settings

    def __enter__(self) -> TraceWriter:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("w", encoding="utf-8", errors="surrogatepass")
            self._file.write(line(header(self._settings)))
            self._file.flush()
        except OSError as exc:
            raise self._failed(exc) from exc
        return self

    def write(self, event: Event) -> None:
        """Append one event; whole rounds are on disk before the next one begins."""
        if self._file is None:
            raise ValueError("the trace is not open: use it in a with statement")
        try:
            self._file.write(line(to_json(event)))
            if isinstance(event, RunStarted | Metrics | Done | Error):
                self._file.flush()
        except OSError as exc:
            raise self._failed(exc) from exc

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def _failed(self, exc: OSError) -> TraceError:
        return TraceError(
            f"Cannot write the trace {self._path}: {exc.strerror or exc}.", "Choose another --trace file."
        )


def read(path: Path) -> Recording:
    """Read a trace file.

    Raises:
        TraceError: no such file, not a trace, a newer schema, or damaged before its last line.
    """
    try:
        with path.open(encoding="utf-8", errors="surrogatepass") as file:
            return parse(file)
    except OSError as exc:
        raise TraceError(f"Cannot read {path}: {exc.strerror or exc}.", "Give a trace that specviz wrote.") from exc
    except UnicodeDecodeError as exc:
        raise TraceError(f"{path} is not a trace: it is not UTF-8 text.", "Give a .jsonl file.") from exc


def parse(source: Iterable[str]) -> Recording:
    """Read a trace from its lines; the last one may be cut.

    Raises:
        TraceError: see `read`.
    """
    raw = [text for text in source if text.strip()]
    if not raw:
        raise TraceError("The trace is empty.", "The run was cut before its first line was written.")
    head, *rest = (_load(text, number, last=number == len(raw)) for number, text in enumerate(raw, 1))
    if head is None or head.get("type") != "header":
        raise TraceError("This is not a specviz trace: the first line is not a header.", "Give a .jsonl trace file.")
    if not isinstance(head.get("schema"), int) or head["schema"] > SCHEMA:
        raise TraceError(
            f"The trace has schema {head.get('schema')!r}; this specviz reads up to {SCHEMA}.", "Update it."
        )
    return Recording(head, tuple(from_json(data) for data in rest if data is not None))


def _load(text: str, number: int, last: bool) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as exc:
        if last and not text.endswith("\n"):
            return None
        raise TraceError(
            f"Line {number} of the trace is damaged: {exc.msg}.", "Cut the file before that line."
        ) from exc
    if not isinstance(data, dict):
        raise TraceError(f"Line {number} of the trace is not an object.", "Give a .jsonl trace file.")
    return data
