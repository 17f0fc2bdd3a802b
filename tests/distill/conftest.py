from __future__ import annotations

from pathlib import Path

import pytest

from specviz.engines.mlx.language_model import LanguageModel
from specviz.setup.loading import load_mlx_model
from tests.engines.tiny import write_tiny_model


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"), padding=4, rope_traditional=True, num_hidden_layers=3)


@pytest.fixture
def tiny(tiny_folder: Path) -> LanguageModel:
    return load_mlx_model(str(tiny_folder))
