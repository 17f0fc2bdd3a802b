"""Files are complete or absent, also when the disk is full."""

import errno
import os
from pathlib import Path

import pytest

from specviz.core.errors import RunError, SettingsError
from specviz.core.files import disk_errors, sha256_of, write_whole


@pytest.mark.parametrize("data", [b"new", "new", lambda path: path.write_text("new")])
def test_a_file_is_replaced(tmp_path: Path, data: object) -> None:
    path = tmp_path / "made" / "for it" / "state.json"
    for _ in range(2):
        write_whole(path, data)  # type: ignore[arg-type]
        assert path.read_text() == "new" and os.listdir(path.parent) == [path.name]


def test_half_of_a_pair_of_surrogates_is_written_as_an_escape(tmp_path: Path) -> None:
    write_whole(tmp_path / "text", "caf\u00e9 \ud83d")
    assert (tmp_path / "text").read_bytes() == b"caf\xc3\xa9 \\ud83d"


def test_the_name_beside_it_has_the_same_ending(tmp_path: Path) -> None:
    seen: list[Path] = []

    def write(path: Path) -> None:
        seen.append(path)
        path.touch()

    write_whole(tmp_path / "a.npz", write)
    assert seen[0].suffix == ".npz" and seen[0].parent == tmp_path


@pytest.mark.parametrize("kind", [OSError, KeyboardInterrupt])
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, kind: type[BaseException]) -> None:
    path = tmp_path / "state.json"
    write_whole(path, "whole")

    def fail(partial: Path) -> None:
        partial.write_text("half of")
        raise kind

    with pytest.raises(kind):
        write_whole(path, fail)
    assert path.read_text() == "whole" and os.listdir(tmp_path) == ["state.json"]


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "part"))
    with pytest.raises(RunError, match=f"{tmp_path} is full") as error, disk_errors(tmp_path, RunError, "Free some."):
        raise full
    assert error.value.remedy == "Free some." and error.value.__cause__ is full


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(SettingsError, match=f"{path} cannot"), disk_errors(tmp_path, SettingsError, "Choose another."):
        write_whole(path / "below", "text")
    with pytest.raises(RunError, match=f"^{tmp_path} cannot be written: no words[.] Look"):
        with disk_errors(tmp_path, RunError, "Look."):
            raise OSError("no words")


def test_a_file_is_named_and_not_the_hidden_one_beside_it(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as is_folder:
        write_whole(tmp_path, "text")
    assert is_folder.value.filename == str(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        write_whole(tmp_path / "file" / "below", "text")
    assert os.listdir(tmp_path) == ["file"]


def test_a_name_may_be_as_long_as_the_disk_allows(tmp_path: Path) -> None:
    write_whole(tmp_path / f"{'a' * 250}.json", "text")
    with pytest.raises(OSError, match="name too long") as error:
        write_whole(tmp_path / f"{'a' * 300}.json", "text")
    assert "aaa.json" in str(error.value.filename)


def test_a_link_a_device_and_a_pipe_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "text"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", "text")
    assert os.read(reader, 10) == b"text" and (tmp_path / "pipe").is_fifo()
    os.close(reader)


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("kept")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as for a user who is not root
    with pytest.raises(PermissionError, match="file"):
        write_whole(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "kept"


def test_sha256(tmp_path: Path) -> None:
    write_whole(tmp_path / "abc", b"abc")
    assert sha256_of(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
