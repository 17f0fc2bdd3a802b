"""Texts from outside are read by one reader, whatever an editor has made of them."""

import io
import os
import threading
from pathlib import Path

import pytest

from specviz.core.errors import PromptError
from specviz.core.reading import Wanted, json_of, read_stream, read_text, text_of

WANTED = Wanted("a prompt", PromptError, "Give a text file.", largest_bytes=10_000)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encoding_mark_and_line_ends_are_no_part_of_a_text(encoding: str, end: str) -> None:
    # langchain#40440: the byte-order mark became a token.
    assert text_of(f"Say ü{end}{end}two{end}".encode(encoding), "p.txt", WANTED) == "Say ü\n\ntwo\n"


def test_two_marks_are_both_left_out() -> None:
    assert text_of(b"\xef\xbb\xbf\xef\xbb\xbfSay", "p.txt", WANTED) == "Say"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid", "is a Git LFS pointer, not a prompt.*git lfs pull"),
        (b"PK\x03\x04", "p.txt is a zip archive, not a prompt. Unpack it"),
        ("ok\nGrüße".encode("latin-1"), "p.txt cannot be read as UTF-8: .*0xfc in line 2. Save it as UTF-8"),
        ("ok".encode("utf-16") + b"\x00\xd8", "cannot be read as UTF-16"),
        (b"a" * 10_001, "is larger than 0.01 MB"),
    ],
)
def test_what_is_no_text_is_refused_by_its_name(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_bytes(data)
    with pytest.raises(PromptError, match=words):
        read_text(tmp_path / "p.txt", WANTED)


def test_a_folder_a_missing_file_and_an_impossible_path_are_said(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path, "is a folder, not a prompt"),
        (tmp_path / "none", "cannot be read: No such file"),
        (tmp_path / "a\0b", "cannot be read: embedded null byte"),
    ):
        with pytest.raises(PromptError, match=words):
            read_text(path, WANTED)


def test_a_pipe_of_a_shell_is_read(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    writer = threading.Thread(target=lambda: pipe.write_text("Say two"), daemon=True)
    writer.start()
    assert read_text(pipe, WANTED) == "Say two"
    writer.join(10)


def test_an_endless_stream_is_not_read_to_its_end() -> None:
    class Endless(io.RawIOBase):
        taken = 0

        def read(self, size: int = -1, /) -> bytes:
            self.taken += size
            return b"a" * size

    stream = Endless()
    with pytest.raises(PromptError, match="is larger than"):
        read_stream(stream, "standard input", WANTED)  # type: ignore[arg-type]
    assert stream.taken == 10_001


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is not JSON: expecting value at character 1"),
        ('{\n"a": }', "at character 6 of line 2"),
        ('{"a": NaN}', "NaN is not a number of JSON"),
        ('{"a": {"b": 1, "b": 2}}', "it has the key 'b' twice"),
        (r'{"a": ["\ud83d"]}', "half of a surrogate pair"),
        (r'{"\uDE00": 1}', "half of a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "digit"),
        (b'"\xff"', "utf-8"),
    ],
)
def test_json_from_outside_is_read_strictly(text: str | bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        json_of(text)


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert json_of(rb'{"a": "\ud83d\ude00"}') == {"a": "😀"}
