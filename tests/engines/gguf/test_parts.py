from __future__ import annotations

from pathlib import Path

import pytest

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.llama_rules import check_for_llama
from specviz.engines.gguf.mlx_rules import check_for_mlx
from specviz.engines.gguf.parts import read_model
from specviz.engines.gguf.read import read_gguf
from tests.engines.raw_gguf import Entry, RawGguf, pieces_of
from tests.engines.sound_gguf import write_sound_gguf

U16, I32 = 2, 5


def write_parts(folder: Path, count: int = 3) -> list[Path]:
    """A sound model in several files, as llama.cpp splits one: the metadata are in the first."""
    whole = pieces_of(write_sound_gguf(folder / "whole.gguf"))
    paths = []
    for n in range(count):
        entries = whole.entries if n == 0 else []
        numbers = [("split.no", U16, n), ("split.count", U16, count), ("split.tensors.count", I32, len(whole.tensors))]
        part = RawGguf([*entries, *(Entry(*number) for number in numbers)], whole.tensors[n::count])
        paths.append(folder / f"model-{n + 1:05}-of-{count:05}.gguf")
        paths[-1].write_bytes(part.encoded())
    return paths


def refusal(path: Path) -> str:
    with pytest.raises(UnsupportedModelError) as caught:
        check_for_llama(path)
    assert caught.value.remedy
    return str(caught.value)


def changed(path: Path, key: str, value: int) -> None:
    part = pieces_of(path)
    part.entry(key).value = value
    path.write_bytes(part.encoded())


def test_parts_are_one_model(tmp_path: Path) -> None:
    first, *_ = parts = write_parts(tmp_path)
    whole, joined = read_gguf(tmp_path / "whole.gguf"), check_for_llama(first)
    assert joined.tensors.keys() == whole.tensors.keys()
    assert joined.metadata["llama.block_count"] == 2
    assert joined.file_bytes == sum(part.stat().st_size for part in parts)


def test_a_model_in_one_file(tmp_path: Path) -> None:
    path = write_sound_gguf(tmp_path / "one.gguf")
    assert read_model(path) == read_gguf(path)


def test_what_is_no_whole_model(tmp_path: Path) -> None:
    first, second, third = write_parts(tmp_path)
    assert "is part 2 of 3" in refusal(second)
    assert "-00001-of-00003.gguf" in refusal(second)
    renamed = first.rename(tmp_path / "mine.gguf")
    assert "its name does not end in -00001-of-00003.gguf" in refusal(renamed)
    renamed.rename(first)
    third.unlink()
    assert "model-00003-of-00003.gguf is not beside it" in refusal(first)
    third.write_bytes(second.read_bytes())
    assert "model-00003-of-00003.gguf says that it is part 2 of 3" in refusal(first)


def test_parts_of_different_models(tmp_path: Path) -> None:
    first, second, third = write_parts(tmp_path)
    changed(first, "split.tensors.count", 7)
    assert "gives 7 as 'split.tensors.count', and its parts have 20 tensors" in refusal(first)
    changed(first, "split.tensors.count", 20)
    part = pieces_of(third)
    part.tensors[0].name = pieces_of(second).tensors[0].name
    third.write_bytes(part.encoded())
    assert "the tensor 'output_norm.weight'" in refusal(first)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    first, second, _ = write_parts(tmp_path)
    second.write_bytes(second.read_bytes()[:1000])
    assert "model-00002-of-00003.gguf is not a complete GGUF file" in refusal(first)


def test_mlx_reads_no_parts(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="one part of a model"):
        check_for_mlx(write_parts(tmp_path)[0])
