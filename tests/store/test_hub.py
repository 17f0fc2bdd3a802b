from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from specviz.core.errors import DownloadError, SettingsError, SpecvizError, UnknownModelError
from specviz.core.wait import Progress, Wait
from specviz.store import hub, store

REPO = "some-org/some-model"


def answer(monkeypatch: pytest.MonkeyPatch, result: Any) -> dict[str, Any]:
    """Replace the hub's client; returns the arguments of its last call."""
    asked: dict[str, Any] = {}

    def snapshot_download(repo: str, **options: Any) -> str:
        asked.update(options, repo=repo)
        if isinstance(result, Exception):
            raise result
        return str(result(options) if callable(result) else result)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    return asked


def test_a_repository_in_the_hubs_cache_needs_no_network(monkeypatch: pytest.MonkeyPatch, tiny_folder: Path) -> None:
    asked = answer(monkeypatch, tiny_folder)
    assert store.pull(REPO) == store.local_path(REPO) == tiny_folder
    assert asked["local_files_only"] is True and asked["repo"] == REPO


def test_what_is_not_here_is_fetched_with_progress_in_bytes(monkeypatch: pytest.MonkeyPatch, tiny_folder: Path) -> None:
    def download(options: dict[str, Any]) -> Path:
        if options.get("local_files_only"):
            raise FileNotFoundError("not cached")
        files = options["tqdm_class"](total=3, desc="Fetching 3 files")
        data = options["tqdm_class"](total=1000, initial=100, unit="B", unit_scale=True, name="some.name")
        for _ in range(3):
            data.update(300)
            files.update(1)
        return tiny_folder

    answer(monkeypatch, download)
    seen: list[Progress] = []
    assert store.pull(REPO, Wait(seen.append)) == tiny_folder
    assert [(p.done, p.total) for p in seen] == [(0, None), (400, 1000), (700, 1000), (1000, 1000)]
    assert {p.unit for p in seen} == {"bytes"}


def test_cancelling_stops_at_the_next_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(options: dict[str, Any]) -> Path:
        options["tqdm_class"](total=1000, unit="B").update(10)
        raise AssertionError("went on")

    answer(monkeypatch, download)
    with pytest.raises(DownloadError, match="cancelled"):
        hub.fetch(REPO, Wait(cancelled=lambda: True))


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of a hub's cache for this test, with a gigabyte free."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("specviz.store.workspace.shutil.disk_usage", lambda folder: SimpleNamespace(free=10**9))
    return tmp_path / "hub"


def test_a_known_model_too_large_for_the_disk_is_refused_before_the_download(
    monkeypatch: pytest.MonkeyPatch, small_disk: Path
) -> None:
    asked = answer(monkeypatch, FileNotFoundError("not cached"))
    with pytest.raises(DownloadError, match="is full") as caught:
        store.pull("llama-3.2-3b")
    assert "HF_HOME" in caught.value.remedy and asked["local_files_only"] is True


def test_what_has_arrived_before_needs_no_more_space(
    monkeypatch: pytest.MonkeyPatch, small_disk: Path, tiny_folder: Path
) -> None:
    blobs = small_disk / "models--some-org--some-model" / "blobs"
    blobs.mkdir(parents=True)
    with (blobs / "half.incomplete").open("wb") as file:
        file.truncate(10**9)
    answer(monkeypatch, tiny_folder)
    assert hub.fetch(REPO, download_bytes=18 * 10**8) == tiny_folder


def hub_error(name: str, status: int) -> Exception:
    from huggingface_hub import errors

    # The client's HTTP library can change; its errors use only these fields.
    response = SimpleNamespace(status_code=status, headers={}, request=None)
    error: Exception = getattr(errors, name)("refused", response=response)
    return error


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: ConnectionError("no route"), DownloadError, "Check the network"),
        (lambda: OSError(errno.ENOSPC, "No space left on device"), DownloadError, "HF_HOME"),
        (lambda: PermissionError(errno.EACCES, "Permission denied", "/x/hub"), DownloadError, "/x/hub: Permission"),
        (lambda: hub_error("GatedRepoError", 403), UnknownModelError, "licence"),
        (lambda: hub_error("RepositoryNotFoundError", 404), UnknownModelError, "no repository"),
    ],
)
def test_every_error_has_a_remedy(
    monkeypatch: pytest.MonkeyPatch, make: Any, kind: type[SpecvizError], said: str
) -> None:
    answer(monkeypatch, make())
    with pytest.raises(kind) as caught:
        hub.fetch(REPO)
    assert said in str(caught.value) and caught.value.remedy


@pytest.mark.parametrize("repo", ["no-such-org/no-such-model", "bad--/name.git"])
def test_a_repository_that_is_not_here_raises_nothing(repo: str) -> None:
    assert hub.cached(repo) is None


def test_a_half_fetched_repository_is_not_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    answer(monkeypatch, tmp_path)
    assert hub.cached(REPO) is None


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("SSL_CERT_FILE", "/gone/ca.pem", "SSL_CERT_FILE names /gone/ca.pem"),
        ("SSL_CERT_DIR", "/gone", "SSL_CERT_DIR names /gone"),
        ("ALL_PROXY", "socks://me:planted-password@127.0.0.1:1", "proxy that ALL_PROXY names"),
        ("HTTP_PROXY", "ftp://127.0.0.1", "proxy that HTTP_PROXY names"),
    ],
)
def test_what_the_hubs_client_cannot_use_is_named(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub's client reads these itself (aider#3710)."""
    surroundings(monkeypatch, **{variable: value})
    with pytest.raises(SettingsError) as caught:
        hub.fetch(REPO)
    assert said in caught.value.message and caught.value.remedy and "planted" not in str(caught.value)


def surroundings(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Only these of the variables for proxies and certificates."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_a_fault_on_the_way_to_the_hub_is_what_it_is_for_any_server(monkeypatch: pytest.MonkeyPatch) -> None:
    surroundings(monkeypatch, HTTPS_PROXY="http://me:planted-password@proxy.invalid:3128")
    behind = httpx2.ProxyError("407 Proxy Authentication Required")
    error = RuntimeError("cannot find the files")
    error.__cause__ = behind
    answer(monkeypatch, error)
    with pytest.raises(DownloadError) as caught:
        hub.fetch(REPO)
    assert "The proxy http://proxy.invalid:3128 of HTTPS_PROXY does not connect" in caught.value.message
    assert "Complete files are kept" in caught.value.remedy and "planted" not in str(caught.value)


def test_a_hub_that_cannot_be_reached_says_why_and_what_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    surroundings(monkeypatch)
    error = RuntimeError("cannot find the files,\nand a paragraph about it")
    error.__cause__ = httpx2.ReadTimeout("timed out")
    answer(monkeypatch, error)
    with pytest.raises(DownloadError, match="did not answer in time") as caught:
        hub.fetch(REPO)
    assert caught.value.remedy.startswith("Check the network")
