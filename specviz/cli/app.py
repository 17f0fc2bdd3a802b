"""`specviz app`: the page, from any folder."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import specviz

_PACKAGE = Path(specviz.__file__).parent


def add_app(commands: Any) -> None:
    """Register the command."""
    p: argparse.ArgumentParser = commands.add_parser(
        "app",
        help="open the page in the browser",
        description="Open the page in the browser. It is served by this machine, to this machine only, until Ctrl-C. "
        "Settings come from the environment, then from .env in this folder.",
    )
    p.add_argument("--port", type=int, help="port to listen on (default: 8501, or the next free one)")
    p.add_argument(
        "--address",
        metavar="HOST",
        help="address to listen on (default: 127.0.0.1). 0.0.0.0 lets everybody on the network use the page, its "
        "models and its key: put something in front of it that asks who they are",
    )
    p.add_argument("--no-browser", action="store_true", help="print the address only")
    p.set_defaults(run=_run)


def script() -> Path:
    """The page's first script: the wheel brings it in `site`; in a checkout it is beside the package."""
    installed = _PACKAGE / "site" / "app.py"
    return installed if installed.is_file() else _PACKAGE.parent / "app.py"


def command(options: argparse.Namespace) -> list[str]:
    """The command that serves the page. Its options are those of .streamlit/config.toml beside the script."""
    flags = ["--server.headless=true"] if options.no_browser else []
    if options.port is not None:
        flags.append(f"--server.port={options.port}")
    if options.address is not None:
        flags.append(f"--server.address={options.address}")
    return [sys.executable, "-m", "streamlit", "run", str(script()), *flags]


def _run(options: argparse.Namespace) -> int:
    # The process becomes the server, so that signals and exit code are the server's own.
    os.execv(sys.executable, command(options))
