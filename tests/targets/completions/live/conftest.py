"""llama-server with the default model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specviz.store import store
from tests.llama_server import HAS_WHEEL, MODEL, WITHOUT_WHEEL, LlamaServer, llama_server
from tests.targets.completions.live.runs import Runs


@pytest.fixture(scope="session")
def gguf() -> Path:
    """The default model's file."""
    if not HAS_WHEEL:
        pytest.skip(WITHOUT_WHEEL)
    return store.pull_gguf(MODEL)


@pytest.fixture(scope="module")
def server(gguf: Path) -> Iterator[LlamaServer]:
    with llama_server(gguf) as server:
        yield server


@pytest.fixture(scope="module")
def live(server: LlamaServer) -> Runs:
    return Runs(server.url)
