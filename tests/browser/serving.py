"""Starts the page on a free port, and finds a browser for it."""

from __future__ import annotations

import importlib.util
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

from specviz.core.settings import ENVIRONMENT, SECRETS

ROOT = Path(__file__).parents[2]
START_S = 60.0
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str | None:
    """The program of a browser that is on this machine."""
    named = os.environ.get("SPECVIZ_CHROMIUM")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def lacking() -> str:
    """Why there is no browser; empty where there is one."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    if chromium() is None:
        return "no chromium, chromium-browser or google-chrome on the PATH, and SPECVIZ_CHROMIUM is not set"
    return ""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serve(script: str, folder: Path, **variables: str) -> Iterator[str]:
    """The URL of a page with these variables in its environment; its output goes into the folder."""
    port = free_port()
    env = {k: v for k, v in os.environ.items() if k not in (*ENVIRONMENT, *SECRETS)} | variables
    log = (folder / "server.log").open("w+")
    options = ["--server.port", str(port), "--server.headless", "true"]
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", str(ROOT / script), *options],
        cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_S
        while not _answers(url + "/_stcore/health"):
            if server.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                raise RuntimeError(f"streamlit did not start:\n{log.read()}")
            time.sleep(0.05)
        yield url
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(10)
        log.close()


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2):
            return True
    except (URLError, OSError):
        return False
