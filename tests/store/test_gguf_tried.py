from __future__ import annotations

from pathlib import Path

import pytest

from specviz.core.errors import UnsupportedModelError
from specviz.store.gguf import tried


@pytest.fixture
def trials(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    made: list[Path] = []
    monkeypatch.setattr(tried, "try_out", lambda path, tokenizer: made.append(path))
    return made


def test_a_file_is_tried_once_and_again_when_it_has_changed(tmp_path: Path, trials: list[Path]) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"one")
    tried.ensure_tried(path)
    tried.ensure_tried(path)
    assert trials == [path]
    path.write_bytes(b"another")
    tried.ensure_tried(path)
    assert trials == [path, path]


def test_each_part_counts(tmp_path: Path, trials: list[Path]) -> None:
    first, second = (tmp_path / f"model-{n:05}-of-00002.gguf" for n in (1, 2))
    first.write_bytes(b"one")
    second.write_bytes(b"two")
    tried.ensure_tried(first)
    second.write_bytes(b"changed")
    tried.ensure_tried(first)
    assert trials == [first, first]


def test_a_file_that_was_refused_is_tried_again(
    tmp_path: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"one")

    def refuse(path: Path, tokenizer: bool) -> None:
        raise UnsupportedModelError("It is refused.")

    monkeypatch.setattr(tried, "try_out", refuse)
    for _ in range(2):
        with pytest.raises(UnsupportedModelError):
            tried.ensure_tried(path)


def test_a_cache_that_cannot_be_written_costs_a_trial(tmp_path: Path, trials: list[Path], cache_folder: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"one")
    cache_folder.write_bytes(b"a file in place of the folder")
    tried.ensure_tried(path)
    tried.ensure_tried(path)
    assert trials == [path, path]
