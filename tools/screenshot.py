"""Takes the README's pictures from the real page, in Chromium, into docs/.

    python tools/screenshot.py            the default pair: downloads the default model on first use
    python tools/screenshot.py --toy      the toy pair: no download
    python tools/screenshot.py --bench FILE   the Benchmark page with a saved benchmark, instead

Starts the page on a free port, runs one of its examples in the light and the dark theme, and writes docs/live-light.png
and docs/live-dark.png; or docs/benchmark-light.png and docs/benchmark-dark.png.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from playwright.sync_api import Browser, expect, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from specviz.ui.prompts import EXAMPLES  # noqa: E402

START_S, RUN_S = 60, 600
WIDTH, HEIGHT = 1440, 1480
#: Charts of a run whose target is in this process.
CHARTS = 6
BENCH_CHARTS, BENCH_HEIGHT = 4, 1560


def main() -> None:
    """Parse the command line and take both pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--toy", action="store_true", help="use the toy pair, which needs no download")
    parser.add_argument("--example", default="Fix a text", help="name of the example prompt to run")
    parser.add_argument("--folder", type=Path, default=ROOT / "docs", help="where the pictures go")
    parser.add_argument("--bench", type=Path, metavar="FILE", help="a saved benchmark, for the Benchmark page")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    toy = {"SPECVIZ_TARGET": "toy", "DRAFT_MODEL": "toy", "TEMPERATURE": "0.7"} if chosen.toy else {}
    with _page(toy) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            target = chosen.folder / f"{'benchmark' if chosen.bench else 'live'}-{scheme}.png"
            if chosen.bench:
                _take_bench(browser, url, scheme, chosen.bench, target)
            else:
                _take(browser, url, scheme, chosen.example, target)
            print(target)
        browser.close()


def _take(browser: Browser, url: str, scheme: str, example: str, target: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)  # type: ignore[arg-type]
    page.set_default_timeout(RUN_S * 1000)
    page.goto(url)
    page.get_by_role("radio", name=example, exact=True).click()
    prompt = next(e.prompt for e in EXAMPLES if e.name == example)
    expect(page.get_by_label("Prompt", exact=True)).to_have_value(prompt)
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("Finished:").wait_for()
    page.locator(".token").first.wait_for()
    page.wait_for_function("(n) => document.querySelectorAll('.js-plotly-plot').length === n", arg=CHARTS)
    # A token that stands in a refused one's place opens the inspector, and brings the tree to its round.
    page.locator(".token.resampled").nth(1).click()
    page.locator(".inspector").first.wait_for()
    page.mouse.move(WIDTH - 10, 10)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1_000)  # hover and progress animations come to rest
    page.screenshot(path=target)
    page.close()


def _take_bench(browser: Browser, url: str, scheme: str, bench: Path, target: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": BENCH_HEIGHT}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(url)
    page.get_by_role("link", name="Benchmark").click()
    page.get_by_text("Saved benchmarks: open, go on, compare").click()
    page.locator("input[type=file]").first.set_input_files(bench)
    page.get_by_text("Open", exact=True).click()
    page.wait_for_function("(n) => document.querySelectorAll('.js-plotly-plot').length === n", arg=BENCH_CHARTS)
    page.get_by_text("Saved benchmarks: open, go on, compare").scroll_into_view_if_needed()
    page.mouse.move(WIDTH - 10, 10)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(1_000)
    page.get_by_role("button", name="Measure", exact=True).scroll_into_view_if_needed()
    page.screenshot(path=target)
    page.close()


def _chromium() -> str:
    found = os.environ.get("SPECVIZ_CHROMIUM") or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if found is None:
        sys.exit("No Chromium found. Install one, or name it in SPECVIZ_CHROMIUM.")
    return found


@contextmanager
def _page(variables: dict[str, str]) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port), "--server.headless", "true"],
        cwd=ROOT,
        env=dict(os.environ) | variables,
        stdout=subprocess.DEVNULL,
    )
    try:
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_S
        while not _answers(url + "/_stcore/health"):
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit("The page did not start.")
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait(10)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2):
            return True
    except (URLError, OSError):
        return False


if __name__ == "__main__":
    main()
