"""The page in Chromium beside a run without a page: `python -m tests.benchmarks.page`.

The default pair writes a text of 2,000 tokens at full speed, in turn through the page and in a process without one.
Rates are those that a run states of itself. Of each run on the page: whether the browser shows the whole text, whether
the trace has every round, and the longest time for which the browser could not answer. Prints one JSON object; nothing
here asserts a time. Run it on a quiet machine with two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

from specviz.core.events import Done, Event, Metrics, VerifyResult
from specviz.record import trace
from tests.benchmarks.figures import in_turn, spread, told
from tests.browser.measuring import SCRIPT
from tests.browser.serving import CHROMIUM_FLAGS, chromium, serve

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: The default model never ends its answer.
PROMPT = """\
Repeat this table, sorted by name:

name | city | age
Anna | Oslo | 31
Bruno | Lisbon | 45
Carla | Vienna | 28
David | Dublin | 52"""
_TIMEOUT_MS = 600_000


class OpenPage:
    """A page, and what was seen of its runs."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        page.set_default_timeout(_TIMEOUT_MS)
        page.add_init_script(SCRIPT)
        page.goto(url)
        page.get_by_role("button", name="Run", exact=True).wait_for()
        self.longest_task_ms: list[float] = []
        self.seconds: list[float] = []
        self.lost: list[str] = []

    def run(self) -> float:
        """Tokens per second of one run."""
        page = self._page
        page.evaluate("__measured.longTasks.length = 0")
        box = page.get_by_label("Prompt", exact=True)
        box.fill(PROMPT)
        box.press("Control+Enter")
        page.wait_for_timeout(1000)
        began = time.perf_counter()
        page.locator("button:enabled", has_text="Run").first.click()
        page.locator("button:enabled", has_text="Stop").wait_for()
        page.locator("button:enabled", has_text="Run").first.wait_for()
        page.get_by_text("Finished:").wait_for()
        self.seconds.append(time.perf_counter() - began)
        self.longest_task_ms.append(max((t[1] for t in page.evaluate("__measured.longTasks")), default=0.0))
        with page.expect_download() as download:
            page.get_by_role("button", name="Download trace").click()
        events = trace.read(download.value.path()).events
        done = events[-1]
        assert isinstance(done, Done), done
        page.wait_for_timeout(2000)
        shown = page.locator("div.text").text_content() or ""
        self.lost += missing(events, done, shown)
        return done.tokens_per_second or 0.0


def missing(events: tuple[Event, ...], done: Done, shown: str) -> list[str]:
    """What the trace or the browser lacks of a run."""
    rounds = [event.round for event in events if isinstance(event, Metrics)]
    tokens = sum(isinstance(event, VerifyResult) and event.final_token_id is not None for event in events)
    found = []
    if rounds != list(range(rounds[0], rounds[0] + done.total_rounds)):
        found.append(f"{len(rounds)} of {done.total_rounds} rounds in the trace")
    if tokens != done.total_tokens:
        found.append(f"{tokens} of {done.total_tokens} tokens in the trace")
    if "".join(shown.split()) != "".join(done.generated_text.split()):
        found.append(f"the browser shows {len(shown)} of {len(done.generated_text)} characters")
    return found


def headless(tokens: int) -> float:
    """Tokens per second of the same run by the command line."""
    command = [sys.executable, "-m", "specviz", "generate", "--prompt", PROMPT, "--max-tokens", str(tokens), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(ran.stdout)["tokens_per_second"])


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(CHROMIUM_FLAGS))
        with serve("app.py", Path(folder), MAX_TOKENS=str(asked.tokens)) as url:
            page = OpenPage(browser.new_page(viewport={"width": 1440, "height": 900}), url)
            found = in_turn({"page": page.run, "headless": lambda: headless(asked.tokens)}, asked.pairs)
        browser.close()
    return {
        "tokens": asked.tokens,
        "tokens per second": told(found, "page"),
        "s from the click to the end": spread(page.seconds[1:]),
        "longest task of the browser, ms": spread(page.longest_task_ms[1:]),
        "lost": page.lost,
    }


def main() -> None:
    p = argparse.ArgumentParser(prog="python -m tests.benchmarks.page", description=__doc__)
    p.add_argument("--pairs", type=int, default=3)
    p.add_argument("--tokens", type=int, default=2000)
    print(json.dumps(measure(p.parse_args()), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
