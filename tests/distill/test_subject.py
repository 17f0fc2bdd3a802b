"""Names of targets, as a draft's description records them."""

from __future__ import annotations

from pathlib import Path

import pytest

from specviz.distill.subject import _own_name
from tests.store.gguf_shelves import in_ollama, write_gguf


def test_a_recorded_name_is_valid_on_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path))
    in_ollama(tmp_path, "library/llama3.2", "3b")
    path = write_gguf(tmp_path / "Some-Model-Q8_0.gguf")
    names = ("smollm2-135m", "org/name", "org/Some-1.5B-GGUF:Q8_0", "ollama/llama3.2:3b")
    assert [_own_name(name) for name in names] == list(names)
    assert _own_name(str(path)) == "Some-Model-Q8_0"
