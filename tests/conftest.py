"""What tests have measured, told after everything else; the tests themselves may have run in other processes."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from specviz.store.workspace import cache_dir
from tests.engines.tiny import write_tiny_model

if TYPE_CHECKING:
    from specviz.engines.mlx.language_model import LanguageModel

_told: list[tuple[str, str, str]] = []


def pytest_configure() -> None:
    """Processes of the tests are sent signals, which a shell's background job would leave ignored (`nohup`, `&`)."""
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect them; the last report of a test has those of all its phases."""
    if report.when == "teardown":
        for name, found in report.user_properties:
            if name == "figure" and isinstance(found, tuple | list):
                what, value, wanted = found
                _told.append((what, value, wanted))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The figures that were taken, after everything else."""
    if not _told:
        return
    width = max(len(what) for what, _, _ in _told)
    terminalreporter.section("figures of the page in Chromium")
    for what, value, wanted in _told:
        terminalreporter.write_line(f"{what:{width}}  {value}" + (f"   [wanted {wanted}]" if wanted else ""))


@pytest.fixture(scope="session", autouse=True)
def no_drafts_of_tests_in_the_cache() -> Iterator[None]:
    """Drafts that tests make are converted into the user's own cache, which has the default model: taken out again."""
    models = cache_dir() / "models"
    before = set(models.glob("*-gguf-v*"))
    yield
    for made in set(models.glob("*-gguf-v*")) - before:
        if not made.name.startswith("smollm2-"):
            shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> LanguageModel:
    from specviz.setup.loading import load_mlx_model

    return load_mlx_model(str(tiny_folder))


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of this test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SPECVIZ_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def smollm() -> LanguageModel:
    from specviz.setup.loading import load_mlx_model

    return load_mlx_model("smollm2-135m")
