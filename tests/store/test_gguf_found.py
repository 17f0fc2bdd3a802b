"""Models that other programs have put on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specviz.core.errors import UnknownModelError, UnsupportedModelError
from specviz.store import sources, store
from specviz.store.gguf import summary
from specviz.store.gguf.file import gguf_file, gguf_here
from specviz.store.gguf.found import FoundModel, found
from tests.store.gguf_shelves import in_hub_cache, in_ollama, write_gguf, write_manifest

REPO = "bartowski/Llama-3.2-1B-Instruct-GGUF"
FILE = "Llama-3.2-1B-Instruct-Q4_K_M.gguf"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home that other programs have not touched yet."""
    for name in ("OLLAMA_MODELS", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def names() -> dict[str, FoundModel]:
    return {model.name: model for model in found()}


def test_nothing_is_found_in_an_empty_home(home: Path) -> None:
    assert found() == []


def test_a_user_without_a_home_has_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*parts: object, **options: object) -> str:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr("platformdirs.user_cache_dir", none)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", "~/.cache/huggingface/hub")
    assert found() == []


def test_a_model_of_ollamas_is_found_under_ollamas_name(home: Path) -> None:
    blob = in_ollama(home / ".ollama/models", "library/llama3.2", "3b", general_size_label="3B")
    in_ollama(home / ".ollama/models", "mannix/other", "latest", file_type=7)
    in_ollama(home / ".ollama/models", "bartowski/X-GGUF", "Q8_0", host="hf.co", file_type=7)
    assert list(names()) == ["ollama/hf.co/bartowski/X-GGUF:Q8_0", "ollama/llama3.2:3b", "ollama/mannix/other:latest"]
    model = names()["ollama/llama3.2:3b"]
    assert (model.place, model.path, model.label, model.summary.size) == ("Ollama", blob, "Q4_K_M", "3B")
    assert model.summary.vocabulary == ("gpt2", "llama-bpe", 3) and model.disk_bytes == blob.stat().st_size
    source = store.inspect("ollama/llama3.2:3b")
    assert source.is_gguf and source.name == "ollama/llama3.2:3b"
    assert gguf_file(source) == gguf_here(source) == blob
    assert sources.resolve("ollama/mannix/other").location.startswith(str(home))


def test_ollamas_folder_can_be_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(home / "elsewhere"))
    in_ollama(home / "elsewhere", "library/qwen2.5", "latest")
    assert list(names()) == ["ollama/qwen2.5:latest"]


def test_a_model_that_ollama_does_not_have(home: Path) -> None:
    with pytest.raises(UnknownModelError, match=r"'llama3\.2:latest'") as caught:
        sources.resolve("ollama/llama3.2")
    assert "No model of Ollama was found" in caught.value.remedy and "OLLAMA_MODELS" in caught.value.remedy
    in_ollama(home / ".ollama/models", "library/llama3.2", "3b")
    with pytest.raises(UnknownModelError) as caught:
        sources.resolve("ollama/llama3.2")
    assert "It has llama3.2:3b." in caught.value.remedy


LAYER = "application/vnd.ollama.image.model"
ZEROS = "0" * 64


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        {"layers": "none"},
        {"layers": [{"mediaType": 5, "digest": None}]},
        {"layers": [{"mediaType": LAYER, "digest": "sha256:../../../secret.gguf"}]},
        {"layers": [{"mediaType": LAYER, "digest": f"sha256:{ZEROS}/../../secret.gguf"}]},
        {"layers": [{"mediaType": LAYER, "digest": f"sha256:{ZEROS}\n"}]},
        {"layers": [{"mediaType": LAYER, "digest": f"sha256:{'1' * 64}"}]},  # not there
        {"layers": [{"mediaType": LAYER, "digest": f"sha256:{ZEROS}"}] * 2},
        {"layers": [], "padding": "x" * (1 << 20)},
        [],
    ],
    ids=range(12),
)
def test_a_hostile_manifest_is_no_model(home: Path, content: Any) -> None:
    models = home / ".ollama/models"
    write_gguf(models / "secret.gguf")
    write_gguf(models / "blobs" / f"sha256-{ZEROS}")
    write_manifest(models, "library/bad", "latest", content)
    assert found() == []
    write_manifest(models, "library/good", "latest", {"layers": [{"mediaType": LAYER, "digest": f"sha256:{ZEROS}"}]})
    assert list(names()) == ["ollama/good:latest"]


def test_names_that_would_control_a_terminal_are_left_out(home: Path) -> None:
    in_ollama(home / ".ollama/models", "library/a\x1b[2J", "latest")
    write_gguf(home / ".lmstudio/models/some/repo/a\x1b[2J-Q8_0.gguf")
    assert found() == []


def test_what_does_not_continue_text_is_not_offered(home: Path) -> None:
    models = home / ".ollama/models"
    in_ollama(models, "library/nomic", "latest", architecture="nomic-bert")
    in_ollama(models, "library/embedding", "latest", architecture="qwen3", qwen3_pooling_type=3)
    in_ollama(models, "library/sees", "latest", architecture="clip")
    in_ollama(models, "library/lora", "latest", general_type="adapter")
    in_ollama(models, "library/adapted", "latest", "adapter")
    in_hub_cache(home / "hub", REPO, FILE, f"mmproj-{FILE}", "imatrix.gguf")
    assert list(names()) == [f"{REPO}:Q4_K_M"]
    in_ollama(models, "library/llava", "7b", "projector")
    assert "ollama/llava:7b" in names(), "a model that sees too continues text"


@pytest.mark.parametrize(
    ("place", "folder", "prefix"),
    [
        ("LM Studio", f".lmstudio/models/{REPO}", ""),
        ("LM Studio", f".cache/lm-studio/models/{REPO}", ""),
        ("llama.cpp", ".cache/llama.cpp", f"{REPO.replace('/', '_')}_"),
    ],
)
def test_a_model_of_a_repository_in_another_programs_folder_needs_no_download(
    home: Path, place: str, folder: str, prefix: str
) -> None:
    path = write_gguf(home / folder / f"{prefix}{FILE}")
    (model,) = found()
    assert (model.name, model.place, model.label) == (f"{REPO}:Q4_K_M", place, "Q4_K_M")
    for name in (model.name, model.name.lower().replace(REPO.lower(), REPO), REPO, f"hf.co/{REPO}:{FILE}"):
        assert gguf_file(sources.resolve(name)) == path
    assert gguf_here(sources.resolve(f"{REPO}:Q8_0")) is None


def test_the_hubs_cache(home: Path) -> None:
    folder = in_hub_cache(home / "hub", REPO, FILE, "sub/Llama-Q8_0.gguf")
    in_hub_cache(home / "hub", "mlx-community/no-gguf")
    assert list(names()) == [f"{REPO}:Q4_K_M", f"{REPO}:Q8_0"]
    assert {model.place for model in found()} == {"the Hugging Face cache"}
    assert gguf_here(sources.resolve(f"{REPO}:Q8_0")) == folder / "sub/Llama-Q8_0.gguf"


def test_two_models_of_one_quantization_are_told_apart_by_their_files(home: Path) -> None:
    in_hub_cache(home / "hub", "some/models-GGUF", "one-Q8_0.gguf", "two-Q8_0.gguf")
    assert list(names()) == ["some/models-GGUF:one-Q8_0.gguf", "some/models-GGUF:two-Q8_0.gguf"]
    for model in found():
        assert gguf_here(sources.resolve(model.name)) == model.path


def test_a_split_model_is_found_when_all_its_parts_are_there(home: Path) -> None:
    folder = in_hub_cache(home / "hub", REPO, "m-f16-00001-of-00002.gguf")
    assert found() == [] and gguf_here(sources.resolve(f"{REPO}:F16")) is None
    in_hub_cache(home / "hub", REPO, "m-f16-00002-of-00002.gguf")
    (model,) = found()
    assert model.name == f"{REPO}:F16" and model.path.name == "m-f16-00001-of-00002.gguf"
    assert model.disk_bytes == sum(path.stat().st_size for path in folder.iterdir())


def test_a_folder_with_gguf_files_is_no_model_itself(home: Path) -> None:
    path = write_gguf(home / "some" / "a-Q8_0.gguf")
    for ask in (store.pull, store.inspect):
        with pytest.raises(UnsupportedModelError, match="holds GGUF files") as caught:
            ask(str(path.parent))
        assert str(path) in caught.value.remedy


def test_a_part_given_as_a_file_finds_the_others(home: Path) -> None:
    parts = [write_gguf(home / f"m-{n:05}-of-00003.gguf") for n in (1, 2, 3)]
    for part in parts:
        assert gguf_file(sources.resolve(str(part))) == parts[0]
    parts[1].unlink()
    for ask in (store.inspect, store.local_path, store.pull, lambda name: gguf_file(sources.resolve(name))):
        with pytest.raises(UnsupportedModelError, match=r"m-00002-of-00003\.gguf is not beside it\.") as caught:
            ask(str(parts[2]))
        assert "same folder" in caught.value.remedy


def test_a_file_whose_name_only_looks_like_a_part(home: Path) -> None:
    for name in ("m-00000-of-00003.gguf", "m-00004-of-00003.gguf", "m-00001-of-00000.gguf", "m-00001-of-99999.gguf"):
        path = write_gguf(home / name)
        assert gguf_file(sources.resolve(str(path))) == path


@pytest.mark.parametrize("data", [b"", b"GGUF", b"GGUF" + b"\xff" * 100, b"no model", b"GGUF\x03\0\0\0" + b"\0" * 16])
def test_a_file_that_is_no_model_has_no_place_in_the_list(home: Path, data: bytes) -> None:
    path = home / ".lmstudio/models/some/repo/x-Q8_0.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    assert found() == []


def test_a_summary_is_read_again_when_the_file_has_changed(home: Path) -> None:
    path = write_gguf(home / "a.gguf")
    first = summary.summary_of(path)
    write_gguf(path, architecture="qwen2", file_type=7)
    second = summary.summary_of(path)
    assert first and second and (first.quantization, second.quantization) == ("Q4_K_M", "Q8_0")
    assert (first.architecture, second.architecture) == ("llama", "qwen2")
