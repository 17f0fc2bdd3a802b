"""Takes figures from a page in Chromium and its server, and prints them."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.browser.measured.recipe import Recipe

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

SCRIPT = Path(__file__).with_name("measuring.js").read_text()

#: Whether everything is measured at full length; else the same is seen on less, in a third of the time.
WHOLE = os.environ.get("SPECVIZ_MEASURE") == "whole"

#: Figures that no report has taken along yet.
FIGURES: list[tuple[str, str, str]] = []


def figure(what: str, value: str, wanted: str = "") -> None:
    """Print a figure, and keep it for the table."""
    FIGURES.append((what, value, wanted))
    print(f"{what}: {value}" + (f" (wanted: {wanted})" if wanted else ""))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all are not above."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


@dataclass
class Frames:
    """The messages of a page's websocket, put together to runs of a fragment by what each of them redraws.

    Attributes:
        polls: bytes of every finished run of a fragment, by "tree", "charts", "numbers", "page" or "cut short".
        neighbours: per fragment of the last whole page, by its place: what else stands in the same container.
    """

    polls: dict[str, list[int]] = field(default_factory=dict)
    neighbours: dict[tuple[int, ...], list[tuple[int, ...]]] = field(default_factory=dict)
    count: int = 0
    _places: dict[tuple[int, ...], str] = field(default_factory=dict)
    _bytes: int = 0
    _kind: str = "page"

    def listen(self, page: Page) -> None:
        page.on("websocket", lambda socket: socket.on("framereceived", self._take))

    def _take(self, payload: str | bytes) -> None:
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        data = payload.encode() if isinstance(payload, str) else payload
        self.count += 1
        self._bytes += len(data)
        message = ForwardMsg.FromString(data)
        match message.WhichOneof("type"):
            case "new_session":
                self._kind, self._bytes = "numbers", len(data)
                self._places.clear()
            case "delta":
                self._places[tuple(message.metadata.delta_path)] = message.delta.fragment_id
                for part in ("tree", "charts"):
                    if f"specviz_{part}".encode() in data:
                        self._kind = part
            case "script_finished":
                kind = {
                    ForwardMsg.FINISHED_SUCCESSFULLY: "page",
                    ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY: self._kind,
                }.get(message.script_finished, "cut short")
                self.polls.setdefault(kind, []).append(self._bytes)
                self._bytes = 0
                if kind == "page":
                    self.neighbours = self._find_neighbours()

    def _find_neighbours(self) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
        first: dict[str, tuple[int, ...]] = {}
        for place, fragment in self._places.items():
            if fragment and len(place) < len(first.get(fragment, (0,) * 99)):
                first[fragment] = place
        return {
            place: [p for p in self._places if len(p) == len(place) and p[:-1] == place[:-1] and p != place]
            for place in first.values()
        }


class Server:
    """The measured page's server, through its window."""

    def __init__(self, url: str, window: str) -> None:
        self.url, self._window = url, window

    def ask(self, what: str, of: str = "") -> Any:
        with urlopen(f"{self._window}/{what}?{urlencode({'of': of})}", timeout=120) as answer:
            return json.load(answer)


class Measured:
    """One tab on the measured page."""

    def __init__(self, tab: Any, server: Server, frames: Frames) -> None:
        self.tab, self.page, self.server, self.frames = tab, tab.page, server, frames
        self.run = ""

    def start(self, recipe: Recipe) -> str:
        """Press Run; returns the run's id once the page shows it."""
        known = set(self.server.ask("runs"))
        box = self.page.get_by_label("Prompt", exact=True)
        box.fill(str(recipe))
        box.press("Control+Enter")
        self.page.locator("button:enabled", has_text="Run").first.click()
        self.run = self.until(lambda: next((run for run in self.server.ask("runs") if run not in known), ""))
        return self.run

    def until(self, holds: Callable[[], Any], timeout_s: float = 60.0, every_ms: float = 100) -> Any:
        """What `holds` returns, once that is true. Leaves the page alone meanwhile."""
        deadline = time.monotonic() + timeout_s
        while not (found := holds()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {timeout_s:g} s")
            self.page.wait_for_timeout(every_ms)
        return found

    def polls(self) -> list[dict[str, float]]:
        polls: list[dict[str, float]] = self.server.ask("polls", self.run)
        return polls

    def until_polls(self, n: int) -> None:
        """Wait for `n` more polls of the tree."""
        before = self.server.ask("polled", self.run)
        self.until(lambda: self.server.ask("polled", self.run) >= before + n, timeout_s=30 + 2 * n)

    def js(self, expression: str) -> Any:
        return self.page.evaluate(f"() => {{ const m = globalThis.__measured; return {expression}; }}")

    def whole(self) -> dict[str, Any]:
        whole: dict[str, Any] = self.js("m.whole()")
        return whole

    def until_equal(self, timeout_s: float = 60.0) -> None:
        """Wait until the browser shows all that the server has of a run that has ended, then compare everything."""
        wanted = self.server.ask("whole", self.run)
        counts = [self.run, len(wanted["nodes"]), len(wanted["spans"])]
        shown = (
            "[m.hooked?.run, m.hooked?.nodes.length, m.find('.text[role=group]')?.querySelectorAll('.token').length]"
        )
        deadline = time.monotonic() + timeout_s
        while (found := self.js(shown)) != counts:
            assert time.monotonic() < deadline, f"run, nodes, spans: {found} in the browser, {counts} on the server"
            self.page.wait_for_timeout(100)
        whole = self.whole()
        for what in ("nodes", "spans", "text"):
            assert whole[what] == wanted[what], f"{what} of the browser differ from the server's"


class Heap:
    """The JavaScript heap of a page."""

    def __init__(self, page: Page) -> None:
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._session.send("HeapProfiler.enable")
        self._session.send("Performance.enable")

    def used(self) -> float:
        """Bytes in use after a collection."""
        self._session.send("HeapProfiler.collectGarbage")
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(m["value"] for m in metrics if m["name"] == "JSHeapUsedSize"))
