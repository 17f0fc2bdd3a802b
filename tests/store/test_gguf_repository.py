"""GGUF models of repositories: a hub on this machine, the hub's own client, and a cache of each test's own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from specviz.core.errors import DownloadError, UnknownModelError
from specviz.core.wait import Progress, Wait
from specviz.store import hub, sources, store
from specviz.store.gguf.file import gguf_file, gguf_here
from tests.processes import wait_until
from tests.store.fake_hub import FakeHub, fake_hub

REPO = "some-org/Some-Model-GGUF"
PARTS = tuple(f"F16/some-f16-{n:05}-of-00003.gguf" for n in (1, 2, 3))
NAMES = ("Some-Model-Q4_K_M.gguf", "Some-Model-Q8_0.gguf", "mmproj-F16.gguf", *PARTS, "README.md", "config.json")


def contents(name: str) -> bytes:
    return b"GGUF" + name.encode() * 1500


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LLAMA_CACHE", str(tmp_path / "none"))
    with fake_hub({REPO: {name: contents(name) for name in NAMES}}, tmp_path / "hub", monkeypatch) as running:
        yield running


def fetched(name: str, wait: Wait = Wait()) -> Path:
    return gguf_file(sources.resolve(name), wait)


@pytest.mark.parametrize(
    "name",
    [
        f"{REPO}:Q8_0",
        f"{REPO}:q8_0",
        f"hf.co/{REPO}:Q8_0",
        f"huggingface.co/{REPO}:Q8_0",
        f"https://huggingface.co/{REPO}:some-model-Q8_0.gguf",
    ],
)
def test_a_model_of_a_repository_is_fetched_once(served: FakeHub, name: str) -> None:
    source = sources.resolve(name)
    assert source.kind == "hub-gguf" and source.is_gguf and gguf_here(source) is None
    path = gguf_file(source)
    assert path.name == NAMES[1] and path.read_bytes() == contents(NAMES[1])
    served.files.clear()  # from here on the hub has nothing
    assert gguf_file(source) == gguf_here(source) == path
    assert served.served == [(NAMES[1], 0)]


def test_without_a_quantization_the_usual_one_is_taken(served: FakeHub) -> None:
    assert fetched(REPO).name == NAMES[0]


def test_what_is_here_is_taken_where_no_quantization_is_named(served: FakeHub) -> None:
    path = fetched(f"{REPO}:Q8_0")
    assert fetched(REPO) == path


def test_all_parts_of_a_split_model_come_with_progress_over_all_of_them(served: FakeHub) -> None:
    seen: list[Progress] = []
    path = fetched(f"{REPO}:F16", Wait(seen.append))
    assert [part.read_bytes() for part in sorted(path.parent.iterdir())] == [contents(name) for name in PARTS]
    assert path.name == PARTS[0].rpartition("/")[2]
    in_bytes = [p for p in seen if p.unit == "bytes"]
    total = sum(len(contents(name)) for name in PARTS)
    assert [p.done for p in in_bytes] == sorted(p.done for p in in_bytes)
    assert in_bytes[-1].done == in_bytes[-1].total == total and in_bytes[-1].what == f"Downloading {REPO}:F16"


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("Q5_K_M", ["has no model 'Q5_K_M'", "F16, Q4_K_M, Q8_0"]),
        ("model", ["'model' means 2 models", NAMES[0], NAMES[1]]),
    ],
)
def test_a_quantization_that_is_not_there_lists_those_that_are(served: FakeHub, tag: str, said: list[str]) -> None:
    with pytest.raises(UnknownModelError) as caught:
        fetched(f"{REPO}:{tag}")
    assert all(words in str(caught.value) for words in said)


def test_a_cancelled_download_goes_on_where_it_stopped(served: FakeHub) -> None:
    seen: list[Progress] = []
    enough = Wait(seen.append, lambda: bool(seen) and seen[-1].done > 20_000)
    with pytest.raises(DownloadError, match="cancelled") as caught:
        fetched(f"{REPO}:Q8_0", enough)
    assert "What has arrived is kept" in caught.value.remedy
    assert gguf_here(sources.resolve(f"{REPO}:Q8_0")) is None
    seen.clear()
    path = fetched(f"{REPO}:Q8_0", Wait(seen.append))
    assert path.read_bytes() == contents(NAMES[1])
    (_, first), (_, again) = served.served
    assert first == 0 and again > 15_000, "the second request asks for the rest"
    assert min(p.done for p in seen[1:] if p.unit == "bytes") > again


def test_a_download_that_was_killed_goes_on_where_it_stopped(served: FakeHub) -> None:
    served.hold_after = 20_000
    incomplete = hub.folder_of(REPO) / "blobs" / f"{served.sha256(REPO, NAMES[1])}.incomplete"
    code = (
        "from huggingface_hub import constants; constants.DOWNLOAD_CHUNK_SIZE = 1000\n"
        "from specviz.store import sources; from specviz.store.gguf.file import gguf_file\n"
        f"gguf_file(sources.resolve({REPO + ':Q8_0'!r}))"
    )
    variables = os.environ | {"HF_ENDPOINT": served.address, "HF_HUB_CACHE": str(hub.folder_of(REPO).parent)}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2], env=variables)
    try:
        wait_until(lambda: incomplete.exists() and incomplete.stat().st_size > 10_000)
    finally:
        process.kill()
        process.wait()
    assert fetched(f"{REPO}:Q8_0").read_bytes() == contents(NAMES[1])
    assert served.served[1][1] > 10_000


def test_a_connection_that_is_lost_is_taken_up_again(served: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    served.cut_after, served.cuts = 9000, 2
    assert fetched(f"{REPO}:Q8_0").read_bytes() == contents(NAMES[1])
    assert [first for _, first in served.served] == [0, 9000, 18000]


def test_a_part_that_has_arrived_is_not_fetched_again(served: FakeHub) -> None:
    with pytest.raises(DownloadError):
        fetched(f"{REPO}:F16", Wait(cancelled=lambda: len(served.served) == 3))
    fetched(f"{REPO}:F16")
    assert [name for name, _ in served.served] == [*PARTS, PARTS[2]]


def test_two_at_once_fetch_once(served: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    served.hold_after = 20_000
    paths: list[Path] = []
    seen: list[Progress] = []
    first = threading.Thread(target=lambda: paths.append(fetched(f"{REPO}:Q8_0")))
    second = threading.Thread(target=lambda: paths.append(fetched(f"{REPO}:Q8_0", Wait(seen.append))))
    first.start()
    wait_until(lambda: bool(served.served))
    second.start()
    wait_until(lambda: any("Waiting for another" in p.what for p in seen))
    served.over.set()
    first.join(20)
    second.join(20)
    assert len(paths) == 2 and paths[0] == paths[1] and paths[0].read_bytes() == contents(NAMES[1])
    assert {first for _, first in served.served} == {0, 20_000}


def test_a_system_without_links_keeps_one_copy(served: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.file_download.are_symlinks_supported", lambda folder=None: False)
    path = fetched(f"{REPO}:Q8_0")
    assert path.read_bytes() == contents(NAMES[1]) and not path.is_symlink()
    assert not any((hub.folder_of(REPO) / "blobs").iterdir())
    served.files.clear()
    assert fetched(f"{REPO}:Q8_0") == path


def test_contents_other_than_the_hub_has_recorded_are_refused_and_removed(served: FakeHub) -> None:
    served.lie[NAMES[1]] = "0" * 64
    for _ in range(2):
        with pytest.raises(DownloadError, match="SHA-256"):
            fetched(f"{REPO}:Q8_0")
    assert [first for _, first in served.served] == [0, 0]
    assert not any((hub.folder_of(REPO) / "blobs").iterdir())


def test_a_damaged_beginning_of_an_earlier_try_is_found_out(served: FakeHub) -> None:
    blobs = hub.folder_of(REPO) / "blobs"
    blobs.mkdir(parents=True)
    left = blobs / f"{served.sha256(REPO, NAMES[1])}.incomplete"
    left.write_bytes(b"x" * 5000)
    with pytest.raises(DownloadError, match="SHA-256"):
        fetched(f"{REPO}:Q8_0")
    assert fetched(f"{REPO}:Q8_0").read_bytes() == contents(NAMES[1])
    longer = blobs / f"{served.sha256(REPO, NAMES[0])}.incomplete"
    longer.write_bytes(b"x" * 10**6)
    assert fetched(f"{REPO}:Q4_K_M").read_bytes() == contents(NAMES[0])


def test_a_disk_too_small_is_refused_before_the_download(served: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 10_000

    monkeypatch.setattr("specviz.store.workspace.shutil.disk_usage", lambda folder: Usage)
    with pytest.raises(DownloadError, match="is full"):
        fetched(f"{REPO}:Q8_0")
    assert not served.served


def test_a_repository_that_the_hub_does_not_have(served: FakeHub) -> None:
    with pytest.raises(UnknownModelError, match="no repository"):
        fetched("some-org/other-GGUF:Q8_0")


def test_what_has_arrived_is_kept_when_the_hub_is_away(served: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DownloadError) as caught:
        fetched(f"{REPO}:Q8_0")
    assert "What has arrived is kept" in caught.value.remedy


@pytest.mark.parametrize("name", ["../../x-Q8_0.gguf", "/etc/x-Q8_0.gguf", "a\x1b[2J-Q8_0.gguf", "..\\x-Q8_0.gguf"])
def test_hostile_names_of_files_are_not_there(served: FakeHub, name: str) -> None:
    served.files[REPO] = {name: b"GGUF", "x-Q4_0.gguf": b"GGUF"}
    with pytest.raises(UnknownModelError) as caught:
        fetched(f"{REPO}:Q8_0")
    assert caught.value.remedy == "It has Q4_0."


def test_a_repository_with_a_part_missing(served: FakeHub) -> None:
    del served.files[REPO][PARTS[1]]
    with pytest.raises(DownloadError, match=r"some-f16-00002-of-00003\.gguf is missing"):
        fetched(f"{REPO}:F16")


def test_models_pull_names_the_models_of_a_repository_that_has_no_other(
    served: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def snapshot(repo: str, **options: object) -> str:
        if options.get("local_files_only"):
            raise FileNotFoundError("not cached")
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    monkeypatch.setattr(hub, "listed", lambda repo: NAMES)
    with pytest.raises(Exception, match="has GGUF models only: F16, Q4_K_M, Q8_0") as caught:
        store.pull("some-org/some-model")
    assert "some-org/some-model:F16" in str(caught.value)
