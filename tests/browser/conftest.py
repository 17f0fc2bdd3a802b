"""Starts the page on a free port and opens it in Chromium.

Without a browser these tests skip and say why; with SPECVIZ_REQUIRE_BROWSER=1 they fail instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.measuring import FIGURES, SCRIPT, Frames, Measured, Server
from tests.browser.serving import CHROMIUM_FLAGS, chromium, free_port, lacking, serve

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Locator, Page

#: What the page costs takes minutes to measure: only when it is asked for.
collect_ignore_glob = [] if os.environ.get("SPECVIZ_MEASURE") else ["test_measured_*.py"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if missing := lacking():
        if os.environ.get("SPECVIZ_REQUIRE_BROWSER") == "1":
            pytest.fail(f"SPECVIZ_REQUIRE_BROWSER=1, but {missing}")
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium(), args=list(CHROMIUM_FLAGS))
        yield found
        found.close()


@pytest.fixture(scope="session")
def toy_url(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The real page with the toy pair."""
    with serve("app.py", tmp_path_factory.mktemp("toy"), SPECVIZ_TARGET="toy", DRAFT_MODEL="toy") as url:
        yield url


@pytest.fixture(scope="session")
def scripted_url(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same page over scripted runs."""
    with serve("tests/ui/fake_app.py", tmp_path_factory.mktemp("scripted")) as url:
        yield url


@pytest.fixture
def slow_url(browser: Browser, tmp_path: Path) -> Iterator[str]:
    """The real page and host with a slow toy pair."""
    with serve("tests/ui/slow_app.py", tmp_path, SPECVIZ_TARGET="toy", DRAFT_MODEL="toy") as url:
        yield url


@pytest.fixture
def first_start_url(browser: Browser, tmp_path: Path) -> Iterator[str]:
    """The scripted page on a machine that has no model yet."""
    with serve("tests/ui/fake_app.py", tmp_path) as url:
        yield url


@pytest.fixture(scope="session")
def remote_url(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The real page with a toy draft, for targets that the test names."""
    with serve("app.py", tmp_path_factory.mktemp("remote"), DRAFT_MODEL="toy", MAX_TOKENS="48") as url:
        yield url


@pytest.fixture
def serve_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts the real page with these variables in its environment."""
    with ExitStack() as stack:
        yield lambda **variables: stack.enter_context(serve("app.py", tmp_path, **variables))


@pytest.fixture(scope="session")
def measured_server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The page over runs that can be measured, and a window into its process."""
    port = free_port()
    variables = {"SPECVIZ_TARGET": "toy", "DRAFT_MODEL": "toy", "MEASURED_PORT": str(port)}
    with serve("tests/browser/measured/app.py", tmp_path_factory.mktemp("measured"), **variables) as url:
        yield Server(url, f"http://127.0.0.1:{port}")


@pytest.fixture
def open_measured(open_tab: Callable[..., Tab], measured_server: Server) -> Callable[..., Measured]:
    """Opens tabs on the measured page."""
    return partial(_open_measured, open_tab, measured_server)


@pytest.fixture(scope="module")
def measured_tab(browser: Browser, measured_server: Server) -> Iterator[Measured]:
    """One tab on the measured page for a whole module: a page takes seconds to open."""
    with _tabs(browser) as open_tab:
        yield _open_measured(open_tab, measured_server)


def _open_measured(open_tab: Callable[..., Tab], server: Server, **context: Any) -> Measured:
    frames = Frames()

    def prepare(page: Page) -> None:
        page.set_default_timeout(120_000)
        page.add_init_script(SCRIPT)
        frames.listen(page)

    return Measured(open_tab(server.url, prepare=prepare, **context), server, frames)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> None:
    """Send the figures along with the test's report, which also comes from another process."""
    item.user_properties += [("figure", found) for found in FIGURES]
    FIGURES.clear()


@dataclass(frozen=True)
class Watched:
    """A page, everything that its server prints, and every text that its session state held behind a page run."""

    url: str
    log: Path
    dump: Path


@pytest.fixture
def watched(browser: Browser, tmp_path: Path) -> Iterator[Watched]:
    """The real page with toy drafts, its log at its most talkative."""
    dump = tmp_path / "state.txt"
    variables = {"DRAFT_MODEL": "toy", "SPECVIZ_DUMP": str(dump), "STREAMLIT_LOGGER_LEVEL": "debug"}
    with serve("tests/ui/dump_app.py", tmp_path, **variables) as url:
        yield Watched(url, tmp_path / "server.log", dump)


class Tab:
    """One open tab, and everything in it that should not have happened."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.requests: list[str] = []
        self.faults: list[str] = []
        page.on("request", lambda r: self.requests.append(r.url))
        page.on("pageerror", lambda e: self.faults.append(f"script error: {e}"))
        page.on("console", lambda m: self.faults.append(m.text) if m.type == "error" else None)
        page.on("dialog", self._refuse)
        page.goto(url)
        self.button("Run").wait_for()

    def _refuse(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def run(self, prompt: str | None = None) -> None:
        if prompt is not None:
            self.page.get_by_label("Prompt", exact=True).fill(prompt)
        self.button("Run").click()

    def nodes(self) -> int:
        return int(self.tree("tree.nodes.length"))

    def tree(self, expression: str) -> Any:
        """Evaluate over `tree`, the drawn network's state."""
        script = f"(box) => {{ const tree = box.__specviz; return {expression}; }}"
        return self.page.locator(".network").evaluate(script)

    def wait_for_nodes(self, more_than: int) -> int:
        # The network sits in a shadow root, which only locators see through.
        self.page.wait_for_function(
            """(n) => {
              const boxes = (root) => [...root.querySelectorAll("*")].flatMap((e) =>
                e.__specviz?.nodes ? [e] : e.shadowRoot ? boxes(e.shadowRoot) : []);
              return boxes(document).some((box) => box.__specviz.nodes.length > n);
            }""",
            arg=more_than,
        )
        return self.nodes()

    def external_requests(self) -> list[str]:
        own = (self.url, self.url.replace("http", "ws", 1), "data:", "blob:")
        return [url for url in self.requests if not url.startswith(own)]


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Opens tabs; afterwards fails if anything went wrong or out in one of them."""
    with _tabs(browser) as open_one:
        yield open_one


@contextmanager
def _tabs(browser: Browser) -> Iterator[Callable[..., Tab]]:
    tabs: list[Tab] = []

    def open_one(
        url: str, width: int = 1440, height: int = 1100, prepare: Callable[[Page], None] | None = None, **context: Any
    ) -> Tab:
        page = browser.new_page(viewport={"width": width, "height": height}, **context)
        page.set_default_timeout(30_000)
        if prepare:
            prepare(page)
        tabs.append(Tab(page, url))
        return tabs[-1]

    yield open_one
    for tab in tabs:
        tab.page.close()
    assert [fault for tab in tabs for fault in tab.faults] == []
    assert [url for tab in tabs for url in tab.external_requests()] == []
