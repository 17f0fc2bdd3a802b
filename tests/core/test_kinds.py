"""A file is called what it is (diffusers#13559: a Git LFS pointer was taken for weights)."""

import io
import os
import socket
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from safetensors.numpy import save_file

from specviz.core.kinds import kind_at, kind_of

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 98362432\n"


def _sqlite(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("create table t (a)")
    database.close()


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")


def _tar(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("a"), io.BytesIO())


def _safetensors(path: Path) -> None:
    save_file({"a": np.zeros(3, np.float32)}, path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(os.path.relpath(path))  # the path of a socket is at most about 100 characters long


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (Path.mkdir, "a folder"),
        (os.mkfifo, "a pipe"),
        (_socket, "a socket"),
        (Path.touch, "an empty file"),
        (_sqlite, "an SQLite database"),
        (_zip, "a zip archive"),
        (_tar, "a tar archive"),
        (_safetensors, "a safetensors file"),
        (lambda path: np.save(path.open("wb"), np.zeros(3)), "a numpy array"),
        (lambda path: parquet.write_table(pa.table({"a": [1]}), path), "a Parquet file"),
        (lambda path: feather.write_feather(pa.table({"a": [1]}), path), "an Arrow file"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_libraries_write_is_called_what_it_is(make: Callable[[Path], object], name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    make(path)
    assert kind_at(path).name == name


def test_a_device_is_not_opened() -> None:
    assert kind_at(Path(os.devnull)).name == "a device"


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (POINTER, "a Git LFS pointer"),
        (b"/annex/objects/SHA256E-s1--00.gguf\n", "a git-annex pointer"),
        (b"\n <!DOCTYPE HTML>\n<html>", "an HTML page"),
        (b"\xef\xbb\xbf<html lang='en'>", "an HTML page"),
        (b"<?xml version='1.0'?>", "an XML document"),
        (b"GGUF\x03\0\0\0", "a GGUF file"),
        (b"\x1f\x8b\x08\0", "a gzip file"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\0", "a PNG image"),
        (b'{"type":"header","schema":1}', "a trace"),
        ('{"type":"header","schema":1}'.encode("utf-16"), "a trace"),
        (b'{\n  "schema": "specviz.bench/1",', "a saved benchmark"),
        (b'{\n  "schema": "specviz.predict/1",', "a saved prediction"),
        (b'{"a": 1}', "JSON"),
        ("Grüße".encode(), "plain text"),
        ("Grüße".encode()[:3], "plain text"),  # the last character is cut
        ("Grüße".encode("utf-16"), "plain text"),
        ("Grüße".encode("utf-16-le"), "plain text"),
        ("Grüße".encode("latin-1"), "text in another encoding than UTF-8"),
        (bytes(4096), "binary data"),
        (b"\0\1\2\3" * 9, "binary data"),
        (b"abc\0\xff\xfe", "binary data"),
    ],
)
def test_the_first_bytes_say_what_it_is(start: bytes, name: str) -> None:
    assert kind_of(start).name == name


def test_a_pointer_is_told_how_to_fetch_what_it_stands_for() -> None:
    assert "git lfs pull" in kind_of(POINTER).remedy and not kind_of(POINTER).text
