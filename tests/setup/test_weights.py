"""One short name means the files of the engine that runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specviz.cli import main
from specviz.core.errors import SettingsError, UnsupportedModelError
from specviz.setup import catalog, engines
from specviz.setup.weights import engine_wish, fetch_weights, weights_of
from specviz.store import hub
from tests.store.fake_hub import fake_hub
from tests.store.gguf_shelves import in_hub_cache

REPO, FILE = "bartowski/Llama-3.2-1B-Instruct-GGUF", "Llama-3.2-1B-Instruct-Q4_K_M.gguf"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def test_a_short_name_is_a_gguf_file_for_one_engine_and_a_folder_for_the_other(home: Path) -> None:
    gguf, mlx = weights_of("llama-3.2-1b", "llama"), weights_of("llama-3.2-1b", "mlx")
    assert (gguf.engine, gguf.path, gguf.download_bytes) == ("llama", None, 808_000_000)
    assert (mlx.engine, mlx.path, mlx.download_bytes) == ("mlx", None, 713_000_000)
    folder = in_hub_cache(home / "hub", REPO, FILE)
    assert weights_of("llama-3.2-1b", "llama").path == folder / FILE
    assert weights_of("llama-3.2-1b", "mlx").path is None


def test_a_short_name_fetches_its_gguf_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_hub({REPO: {FILE: b"GGUF" * 99}}, home / "hub", monkeypatch) as served:
        path = fetch_weights("llama-3.2-1b", wish="llama")
        assert path == hub.files_folder(REPO) / FILE  # type: ignore[operator]
        assert fetch_weights("llama-3.2-1b", wish="llama") == path and len(served.served) == 1


def test_a_model_without_a_gguf_file_is_refused_for_that_engine(home: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="in MLX's format"):
        weights_of("some-org/some-model", "llama")


def test_lists_say_where_no_engine_can_run_a_model(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("specviz.engines.llama.usable.problem", lambda: "The processor lacks AVX2.")
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    (choice,) = (c for c in catalog.targets({}) if c.name == "local:llama-3.2-1b")
    assert not choice.available and "The processor lacks AVX2. MLX is not installed" in choice.reason
    assert main(["models", "list"]) == 0
    (line,) = (x for x in capsys.readouterr().out.splitlines() if x.startswith("llama-3.2-1b"))
    assert "n/a" in line and "The processor lacks AVX2." in line


def test_the_environments_engine() -> None:
    assert (engine_wish({}), engine_wish({"SPECVIZ_ENGINE": "mlx", "SPECVIZ_TOP_P": "no number"})) == ("auto", "mlx")
    with pytest.raises(SettingsError, match="Unknown engine 'cuda'"):
        engine_wish({"SPECVIZ_ENGINE": "cuda"})
    assert catalog.targets({"SPECVIZ_ENGINE": "cuda"}), "a list raises no error"
