"""`specviz app`: which script, which options."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import specviz
from specviz.cli import app, main

ROOT = Path(specviz.__file__).parents[1]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    commands: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, command: commands.append([path, *command]))
    return commands


def test_a_checkout_starts_its_own_page(started: list[list[str]]) -> None:
    main(["app"])
    assert started == [[sys.executable, sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]]


def test_an_installed_package_brings_its_page(
    started: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "app.py").touch()
    monkeypatch.setattr(app, "_PACKAGE", tmp_path)
    main(["app", "--port", "9000", "--address", "0.0.0.0", "--no-browser"])
    assert started[0][5:] == [
        str(tmp_path / "site" / "app.py"),
        "--server.headless=true",
        "--server.port=9000",
        "--server.address=0.0.0.0",
    ]


def test_a_port_that_is_no_number_is_refused(started: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["app", "--port", "http"])
    assert ended.value.code == 2
    assert "--port" in capsys.readouterr().err
    assert started == []
