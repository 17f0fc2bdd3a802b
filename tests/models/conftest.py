from __future__ import annotations

from pathlib import Path

import pytest

from specviz.models.language_model import LanguageModel, load
from tests.models.tiny import write_tiny_model


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> LanguageModel:
    return load(str(tiny_folder))


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of this test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SPECVIZ_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def smollm() -> LanguageModel:
    return load("smollm2-135m")
