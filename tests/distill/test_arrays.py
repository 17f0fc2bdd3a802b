from pathlib import Path

import pytest

from specviz.distill.arrays import save


def test_what_mlx_cannot_write_is_an_error_of_the_disk(tmp_path: Path) -> None:
    import mlx.core as mx

    with pytest.raises(OSError, match="folder.safetensors"):
        save(tmp_path / "no" / "such" / "folder.safetensors", {"x": mx.ones(2)}, {})
