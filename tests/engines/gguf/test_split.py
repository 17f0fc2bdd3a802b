"""Models in several files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.read import read_gguf
from specviz.engines.gguf.split import parts_of, read_model
from tests.engines.raw_gguf import LLAMA, entry, header, tensor
from tests.engines.sound_gguf import write_sound_gguf
from tests.engines.split_gguf import split_gguf

U16, U32 = 2, 4


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sound_gguf(tmp_path_factory.mktemp("whole") / "sound.gguf")


@pytest.fixture
def parts(whole: Path, tmp_path: Path) -> list[Path]:
    return split_gguf(whole, tmp_path / "m", 8)


def test_the_parts_are_one_model(whole: Path, parts: list[Path]) -> None:
    assert [path.name for path in parts] == [f"m-{n:05}-of-00003.gguf" for n in (1, 2, 3)]
    theirs = read_gguf(whole)
    for part in parts:
        assert parts_of(part) == parts
        ours = read_model(part)
        assert {name: t.shape for name, t in ours.tensors.items()} == {n: t.shape for n, t in theirs.tensors.items()}
        assert {k: v for k, v in ours.metadata.items() if not k.startswith("split.")} == theirs.metadata
        assert ours.file_bytes == sum(path.stat().st_size for path in parts)


def test_a_model_in_one_file_is_that_file(whole: Path) -> None:
    assert parts_of(whole) == [whole] and read_model(whole) == read_gguf(whole)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_part_that_is_missing_is_named(parts: list[Path], number: int) -> None:
    gone = parts.pop(number)
    gone.unlink()
    with pytest.raises(UnsupportedModelError, match=f"{gone.name} is not beside it") as caught:
        read_model(parts[0])
    assert "same folder" in caught.value.remedy


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_part_that_is_cut_short_is_named(parts: list[Path], number: int) -> None:
    parts[number].write_bytes(parts[number].read_bytes()[:-40])
    with pytest.raises(UnsupportedModelError, match=f"{parts[number].name} is not a complete GGUF file"):
        read_model(parts[0])


def test_a_part_under_another_name(parts: list[Path], tmp_path: Path) -> None:
    alone = shutil.copy(parts[0], tmp_path / "alone.gguf")
    with pytest.raises(UnsupportedModelError, match=r"part 0 of 3, counted from 0, and its name says otherwise"):
        read_model(Path(alone))
    shutil.copy(parts[1], parts[2])
    with pytest.raises(UnsupportedModelError, match=r"m-00003-of-00003\.gguf says of itself that it is part 1 of 3"):
        read_model(parts[0])


def test_a_whole_model_under_the_name_of_a_part(whole: Path, tmp_path: Path) -> None:
    for n in (1, 2):
        shutil.copy(whole, tmp_path / f"m-{n:05}-of-00002.gguf")
    with pytest.raises(UnsupportedModelError, match="that it is a model in one file and its name"):
        read_model(tmp_path / "m-00001-of-00002.gguf")


def part(number: int, key: bytes = b"split.no", kind: int = U16, name: bytes = b"a") -> bytes:
    said = entry(key, kind, number.to_bytes(2 if kind == U16 else 4, "little"))
    count = entry(b"split.count", U16, b"\x02\0")
    return (header(1, 3, LLAMA + said + count + tensor(name, (1,))) + b"\0" * 64).ljust(512, b"\0")


def test_hostile_parts(tmp_path: Path) -> None:
    first, second = (tmp_path / f"m-{n:05}-of-00002.gguf" for n in (1, 2))
    first.write_bytes(part(0))
    second.write_bytes(part(1, name=b"b"))
    assert set(read_model(first).tensors) == {"a", "b"}
    for data, words in (
        (part(1), "'a' is in an earlier part too"),
        (part(1, kind=U32, name=b"b"), "'split.no' is u32, and must be u16"),
        (part(65535, name=b"b"), "part 65535 of 2"),
    ):
        second.write_bytes(data)
        with pytest.raises(UnsupportedModelError, match=words):
            read_model(first)


@pytest.mark.parametrize(
    "name", ["m-00000-of-00003.gguf", "m-00004-of-00003.gguf", "m-00001-of-00000.gguf", "m-00001-of-99999.gguf", "m"]
)
def test_a_name_that_only_looks_like_a_part(name: str) -> None:
    assert parts_of(Path(name)) == [Path(name)]
