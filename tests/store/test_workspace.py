"""The cache folder of a user whom the system does not know (origin#23369)."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from specviz.cli import main
from specviz.core.errors import SettingsError
from specviz.store.workspace import cache_dir


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `setpriv --reuid 12345` and an empty environment."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("HOME", "XDG_CACHE_HOME", "SPECVIZ_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


@pytest.mark.usefixtures("nobody")
def test_without_a_home_the_variable_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list"]) == 2
    assert "Set SPECVIZ_CACHE to a folder" in capsys.readouterr().err


@pytest.mark.usefixtures("nobody")
def test_with_the_variable_no_home_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.setenv("SPECVIZ_CACHE", "~nobody-of-this-name/cache")
    with pytest.raises(SettingsError, match="nobody-of-this-name"):
        cache_dir()


def test_a_working_folder_that_was_deleted_is_no_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["generate", "--prompt", "the", "--target", "toy", "--draft", "toy", "--no-baseline"]) == 0
