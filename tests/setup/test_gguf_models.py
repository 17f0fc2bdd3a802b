"""GGUF models by all of their names, loaded by the engine llama."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from specviz.core.sampling import Logits
from specviz.setup.loading import Loading, load_model
from tests.engines.sound_gguf import write_sound_gguf
from tests.engines.split_gguf import split_gguf
from tests.store.fake_hub import fake_hub
from tests.store.gguf_shelves import write_manifest

IDS = [5, 9, 20, 7, 33, 12]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound_gguf(tmp_path_factory.mktemp("whole") / "sound.gguf")


@pytest.fixture
def home(cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Each file would be tried in a process of its own, which is another matter and takes longer than all of this.
    monkeypatch.setattr("specviz.store.gguf.tried.try_out", lambda *arguments: None)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OLLAMA_MODELS", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


@pytest.fixture
def expected(home: Path, whole: Path) -> Logits:
    return logits(str(whole))


def logits(name: str) -> Logits:
    model = load_model(name, how=Loading("llama"))
    assert (model.engine, model.precision) == ("llama", "Q8_0")
    return np.array(model.scorer().score(IDS, len(IDS)))


def test_every_way_to_a_file_gives_the_same_model(
    home: Path, whole: Path, expected: Logits, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{'0' * 64}"}
    write_manifest(home / ".ollama/models", "library/sound", "latest", {"layers": [layer]})
    (home / ".ollama/models/blobs").mkdir()
    shutil.copy(whole, home / ".ollama/models/blobs" / f"sha256-{'0' * 64}")
    (home / ".lmstudio/models/org/Sound-GGUF").mkdir(parents=True)
    shutil.copy(whole, home / ".lmstudio/models/org/Sound-GGUF/sound-Q8_0.gguf")
    for name in ("ollama/sound", "org/Sound-GGUF:Q8_0"):
        np.testing.assert_array_equal(logits(name), expected)
    with fake_hub({"org/Other-GGUF": {"other-Q8_0.gguf": whole.read_bytes()}}, home / "hub", monkeypatch):
        np.testing.assert_array_equal(logits("hf.co/org/Other-GGUF:Q8_0"), expected)


def test_a_split_model_gives_the_same_rows(
    home: Path, whole: Path, expected: Logits, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = split_gguf(whole, home / "sound-Q8_0", 8)
    np.testing.assert_array_equal(logits(str(parts[2])), expected)
    files = {part.name: part.read_bytes() for part in parts}
    with fake_hub({"org/Split-GGUF": files}, home / "hub", monkeypatch) as served:
        np.testing.assert_array_equal(logits("org/Split-GGUF"), expected)
        assert sorted(name for name, _ in served.served) == sorted(files)
