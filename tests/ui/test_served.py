"""The server settings of a page that is started as the README says."""

from __future__ import annotations

import tomllib
from pathlib import Path

CONFIG = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def test_the_page_listens_on_this_machine_only_and_reports_nothing() -> None:
    assert CONFIG["server"]["address"] == "127.0.0.1" and CONFIG["browser"]["gatherUsageStats"] is False


def test_nothing_takes_the_processor_from_the_models() -> None:
    assert CONFIG["server"]["fileWatcherType"] == "none", "watching costs two thirds of the tokens per second"
    assert CONFIG["runner"]["postScriptGC"] is False
