from __future__ import annotations

from pathlib import Path

import pytest

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.mlx_rules import check_for_mlx
from tests.engines.raw_gguf import Entry, pieces_of
from tests.engines.sound_gguf import write_sound_gguf

F64, LIST = 12, 9


def test_a_file_that_mlx_can_run(tmp_path: Path) -> None:
    assert len(check_for_mlx(write_sound_gguf(tmp_path / "sound.gguf")).tensors) == 20


@pytest.mark.parametrize(
    "entry", [Entry("general.x", F64, 1.0), Entry("llama.rope.freq_base", F64, 1e4), Entry("x", LIST, [1.0], F64)]
)
def test_64_bit_floats_would_end_the_process(tmp_path: Path, entry: Entry) -> None:
    path = write_sound_gguf(tmp_path / "sound.gguf")
    file = pieces_of(path)
    file.entries = [e for e in file.entries if e.key != entry.key] + [entry]
    path.write_bytes(file.encoded())
    with pytest.raises(UnsupportedModelError, match=f"{entry.key}' with 64-bit floats"):
        check_for_mlx(path)


def test_forms_that_mlx_does_not_read(tmp_path: Path) -> None:
    path = write_sound_gguf(tmp_path / "sound.gguf", {"ffn_up": "Q5_0"})
    with pytest.raises(UnsupportedModelError, match=r"stores blk\.0\.ffn_up\.weight as Q5_0; MLX reads only F32"):
        check_for_mlx(path)
