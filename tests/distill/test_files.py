"""Whole or not at all, also when the disk is full."""

import errno
import os
from pathlib import Path

import pytest

from specviz.core.errors import RunError
from specviz.distill.arrays import save
from specviz.distill.files import disk_errors, write_json, write_whole


def test_a_writer_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_json(path, {"step": 1})

    def fail(partial: Path) -> None:
        partial.write_text("half of")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(partial))

    with pytest.raises(RunError, match="No space left") as error, disk_errors(tmp_path):
        write_whole(path, fail)
    assert "Free some space" in error.value.remedy
    assert path.read_text() == '{\n  "step": 1\n}\n'


def test_what_mlx_cannot_write_is_an_error_of_the_disk(tmp_path: Path) -> None:
    import mlx.core as mx

    with pytest.raises(RunError, match="cannot be used"), disk_errors(tmp_path):
        save(tmp_path / "no" / "such" / "folder.safetensors", {"x": mx.ones(2)}, {})


def test_a_reader_that_has_gone_is_no_error_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(BrokenPipeError), disk_errors(tmp_path):
        raise BrokenPipeError
