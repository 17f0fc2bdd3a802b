"""Where the tokenizer of a completions target comes from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from specviz.core.errors import DownloadError, SpecvizError, UnknownModelError, UnsupportedModelError
from specviz.core.settings import EngineWish, Settings
from specviz.core.wait import Progress, Wait
from specviz.engines.chat_templates import llama3
from specviz.engines.tokenizer import ModelTokenizer
from specviz.engines.toy import ToyTokenizer
from specviz.setup import remote_tokenizer
from specviz.setup.remote_tokenizer import RemoteTokenizer, find
from specviz.store import hub, store
from tests.engines.sound_gguf import write_sound_gguf
from tests.engines.tiny import write_tiny_tokenizer
from tests.engines.tiny_distilled import write_tiny_distilled


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tokenizer only."""
    made = tmp_path_factory.mktemp("tokenizer")
    write_tiny_tokenizer(made)
    return made


@pytest.fixture(scope="module")
def plain(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without a chat template."""
    made = Path(shutil.copytree(folder, tmp_path_factory.mktemp("plain") / "plain"))
    config = json.loads((made / "tokenizer_config.json").read_text())
    del config["chat_template"]
    (made / "tokenizer_config.json").write_text(json.dumps(config))
    return made


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A hub without repositories; returns the names that were requested."""
    asked: list[str] = []

    def snapshot_download(repo: str, **options: Any) -> str:
        if not options.get("local_files_only"):
            asked.append(repo)
        raise FileNotFoundError("not here")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    return asked


def has(monkeypatch: pytest.MonkeyPatch, folders: dict[str, Path], here: bool) -> list[str]:
    """A hub that has these repositories, in its cache or only on the network."""
    fetched: list[str] = []
    monkeypatch.setattr(hub, "cached_tokenizer", lambda repo: folders.get(repo) if here else None)

    def fetch(repo: str, *_: Any) -> Path:
        fetched.append(repo)
        if repo not in folders:
            raise DownloadError(f"{repo} could not be fetched: no route", "Check the network.")
        return folders[repo]

    monkeypatch.setattr(hub, "fetch_tokenizer", fetch)
    return fetched


def settings(model: str = "some-model", draft: str = "ngram", tokenizer: str = "") -> Settings:
    return Settings(target=f"openai:{model}", draft=draft, tokenizer=tokenizer)


def refused(wanted: Settings, kind: type[SpecvizError], said: str) -> SpecvizError:
    with pytest.raises(kind, match=said) as caught:
        find(wanted)
    assert "TARGET_TOKENIZER" in caught.value.remedy and "--tokenizer" in caught.value.remedy
    return caught.value


def check(found: RemoteTokenizer, folder: Path, name: str, own: bool) -> None:
    assert (found.name, found.own) == (name, own)
    right = ModelTokenizer(folder)
    assert found.vocabulary == right.vocabulary and found.vocab_size == right.vocab_size
    assert found.stop_ids == right.stop_ids and found.stop_ids
    assert found.tokenizer.encode("the sky") == right.encode("the sky")


def test_the_settings_come_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has(monkeypatch, {"org/name": Path("/nowhere")}, here=True)
    check(find(settings("org/name", f"model:{'/nowhere'}", str(folder))), folder, str(folder), own=True)


def test_the_toys_may_be_named() -> None:
    found = find(settings(tokenizer="toy"))
    assert isinstance(found.tokenizer, ToyTokenizer) and found.own
    assert found.vocabulary == ToyTokenizer().vocabulary and found.vocab_size == ToyTokenizer().vocab_size


def test_the_models_own_is_taken_where_it_is_here(folder: Path, plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = has(monkeypatch, {"org/name": folder}, here=True)
    check(find(settings("org/name", f"model:{plain}")), folder, "org/name", own=True)
    check(find(settings(str(folder), f"model:{plain}")), folder, str(folder), own=True)
    assert fetched == []


def test_the_drafts_is_used_where_nothing_better_is_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = has(monkeypatch, {"org/name": Path("/nowhere")}, here=False)
    for draft in (f"model:{folder}", f"ngram+model:{folder}"):
        for model in ("org/name", "gpt-oss-120b"):
            check(find(settings(model, draft)), folder, str(folder), own=False)
    assert fetched == []


def test_a_distilled_draft_has_the_tokenizer_of_its_target(folder: Path, tmp_path: Path) -> None:
    draft = write_tiny_distilled(tmp_path / "d", ModelTokenizer(folder).vocabulary, range(50), name=str(folder))
    check(find(settings("some-model", f"ngram+model:{draft}")), folder, str(folder), own=False)
    toys = write_tiny_distilled(tmp_path / "t", ToyTokenizer().vocabulary, range(30), name="toy")
    assert isinstance(find(settings("some-model", f"model:{toys}")).tokenizer, ToyTokenizer)


def test_a_draft_of_a_draft_is_refused(tmp_path: Path) -> None:
    draft = write_tiny_distilled(tmp_path / "d", ToyTokenizer().vocabulary, range(30), name=str(tmp_path / "d"))
    refused(settings("some-model", f"model:{draft}"), UnsupportedModelError, "a distilled draft itself")


def test_the_repository_is_fetched_last(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = has(monkeypatch, {"org/name": folder}, here=False)
    check(find(settings("org/name")), folder, "org/name", own=True)
    assert fetched == ["org/name"]


def test_no_weights_are_fetched_for_a_tokenizer(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    asked: dict[str, Any] = {}

    def snapshot_download(repo: str, **options: Any) -> str:
        asked.update(options, repo=repo)
        if options.get("local_files_only"):
            raise FileNotFoundError("not here")
        options["tqdm_class"](total=100, unit="B").update(40)
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    seen: list[Progress] = []
    check(find(settings("org/name"), Wait(seen.append)), folder, "org/name", own=True)
    assert not any("safetensors" in pattern or pattern == "*.json" for pattern in asked["allow_patterns"])
    assert [(p.what, p.done) for p in seen] == [
        ("Downloading the tokenizer of org/name", 0),
        ("Downloading the tokenizer of org/name", 40),
    ]
    with pytest.raises(DownloadError, match="cancelled"):
        find(settings("org/name"), Wait(cancelled=lambda: True))


@pytest.mark.parametrize(
    "model", ["default_model", "some model", "accounts/fireworks/models/x", "/models/x.gguf", "tests"]
)
def test_a_name_without_a_known_tokenizer(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])  # where a folder is named `tests`
    error = refused(settings(model), UnknownModelError, "is not known")
    assert model in error.message


def test_the_remedy_names_what_would_do() -> None:
    assert "openai/gpt-oss-20b" in refused(settings("gpt-oss-120b"), UnknownModelError, "is not known").remedy
    assert "llama-3.2-1b" in refused(settings("llama-3.3-70b"), UnknownModelError, "is not known").remedy


def test_the_remedy_of_what_cannot_be_fetched_or_read(no_network: list[str], tmp_path: Path) -> None:
    refused(settings("org/name"), DownloadError, "org/name could not be fetched")
    assert no_network == ["org/name"]
    refused(settings(tokenizer=str(tmp_path)), UnsupportedModelError, "cannot be read")
    refused(settings(tokenizer="no such thing"), UnknownModelError, "no such thing")


def test_a_tokenizer_without_a_template_gets_the_familys(folder: Path, plain: Path) -> None:
    def chat(model: str, tokenizer: Path) -> str:
        return find(settings(model, tokenizer=str(tokenizer))).tokenizer.chat("Hi", "Be brief.")

    assert chat("llama-3.3-70b", plain) == llama3("Hi", "Be brief.")
    assert chat("some-model", plain) == "Hi"
    assert chat("llama-3.3-70b", folder).startswith("<|im_start|>system"), "its own goes first"
    wrapped = find(settings("llama-3.3-70b", tokenizer=str(plain))).tokenizer
    right = ModelTokenizer(plain)
    ids = wrapped.encode("the sky")
    assert wrapped.decode(ids) == "the sky" and wrapped.token_bytes(ids[0]) == right.token_bytes(ids[0])
    assert wrapped.token_name(2) == right.token_name(2)


def test_a_reader_may_keep_what_was_read(folder: Path) -> None:
    read: list[Path] = []

    def load(path: Path) -> ModelTokenizer:
        read.append(path)
        return ModelTokenizer(path)

    find(settings(tokenizer=str(folder)), load=load)
    assert read == [folder]


@pytest.mark.smollm
def test_the_shipped_draft_speaks_smollms() -> None:
    found = find(settings("some-model", "ngram+model:smollm2-draft"))
    assert (found.name, found.own) == ("smollm2-135m", False)
    assert find(settings("smollm2-135m")).own
    assert remote_tokenizer.find(settings(str(store.pull("smollm2-135m")))).own


# GGUF files.


@pytest.mark.parametrize("engine", ["llama", "mlx"])
def test_a_gguf_file_has_a_tokenizer_for_either_engine(cache_folder: Path, tmp_path: Path, engine: EngineWish) -> None:
    path = str(write_sound_gguf(tmp_path / "sound.gguf", {"token_embd": "Q4_0"}))
    named = Settings(target="openai:m", draft="ngram", tokenizer=path, engine=engine)
    drafts = Settings(target="openai:m", draft=f"model:{path}", engine=engine)
    for settings, own in ((named, True), (drafts, False)):
        found = find(settings)
        assert (found.name, found.own, found.vocab_size, found.vocabulary.kind) == (path, own, 300, "byte-level BPE")
        ids = found.tokenizer.chat_ids("Hello <|im_end|>")[1]
        assert found.tokenizer.decode(ids).count("Hello") == 1 and 2 in found.stop_ids
    assert (cache_folder / "tried").exists() is (engine == "llama")


def test_a_damaged_gguf_file_is_refused_as_a_tokenizer(cache_folder: Path, tmp_path: Path) -> None:
    path = write_sound_gguf(tmp_path / "sound.gguf")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(UnsupportedModelError, match="The tokenizer of m cannot be read from .*is not a complete GGUF"):
        find(Settings(target="openai:m", draft="ngram", tokenizer=str(path), engine="llama"))
