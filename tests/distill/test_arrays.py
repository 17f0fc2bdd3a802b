from pathlib import Path

import pytest

from specviz.distill.arrays import save


def test_a_failed_write_of_mlx_is_an_os_error(tmp_path: Path) -> None:
    import mlx.core as mx

    with pytest.raises(OSError, match="folder.safetensors"):
        save(tmp_path / "no" / "such" / "folder.safetensors", {"x": mx.ones(2)}, {})
