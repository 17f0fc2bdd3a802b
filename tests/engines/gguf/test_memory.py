from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specviz.engines.gguf import memory
from specviz.engines.gguf.forms import FORMS
from specviz.engines.gguf.memory import available, cache_bytes, needed
from specviz.engines.gguf.read import GgufFile, TensorInfo

MB = 1_000_000


def file(**numbers: Any) -> GgufFile:
    own = {f"llama.{key.replace('__', '.')}": value for key, value in numbers.items()}
    embedding = TensorInfo("token_embd.weight", (576, 49_152), FORMS[8], 0, 30 * MB)
    return GgufFile({"general.architecture": "llama"} | own, {}, {embedding.name: embedding}, 145 * MB)


SMOLLM = {"block_count": 30, "embedding_length": 576, "attention__head_count": 9, "attention__head_count_kv": 3}


def test_weights_and_a_full_cache() -> None:
    # 30 layers, 3 heads of 64 numbers for keys and for values, 2 bytes each.
    assert cache_bytes(file(**SMOLLM)) == 30 * 3 * 64 * 2 * 2 == 23_040
    assert needed(file(**SMOLLM), 8192) == 145 * MB + 8192 * 23_040 + 128 * (49_152 + 9 * 8192) * 4
    assert needed(file(**SMOLLM), 100) == 145 * MB + 100 * 23_040 + 100 * (49_152 + 9 * 100) * 4


@pytest.mark.parametrize(
    ("change", "per_token"),
    [
        ({"attention__head_count_kv": [3] * 29 + [0]}, 29 * 3 * 64 * 4),
        ({"attention__head_count_kv": None, "attention__head_count": 9}, 30 * 9 * 64 * 4),
        ({"attention__key_length": 128, "attention__value_length": 64}, 30 * 3 * 192 * 2),
        ({"attention__head_count": 0}, 0),
        ({"block_count": "thirty"}, 0),
    ],
)
def test_models_of_other_shapes(change: dict[str, Any], per_token: int) -> None:
    numbers = {key: value for key, value in (SMOLLM | change).items() if value is not None}
    assert cache_bytes(file(**numbers)) == per_token


def test_what_is_available_is_less_than_the_machine_has() -> None:
    import psutil

    assert 0 < available() < psutil.virtual_memory().total


def test_a_container_may_have_less_than_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    for name, text in (("max", "1000000\n"), ("current", "900000\n"), ("stat", "anon 1\ninactive_file 50000\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    assert available() == 150_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available() > 150_000
