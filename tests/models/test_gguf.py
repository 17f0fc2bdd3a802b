from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.errors import UnsupportedModelError
from specviz.models import gguf
from specviz.models.gguf_check import check_gguf
from specviz.models.language_model import LanguageModel, load
from tests.models.tiny_gguf import write_tiny_gguf

TEXT = "the sky 2024 is blue<|im_end|>"


def test_a_converted_file_scores_as_the_model_that_it_came_from(
    tiny: LanguageModel, tiny_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    gguf.convert(write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf"), out)
    model = load(str(out))
    ids = tiny.tokenizer.encode(TEXT)
    assert model.tokenizer.encode(TEXT) == ids
    assert model.tokenizer.stop_ids == tiny.tokenizer.stop_ids
    assert model.tokenizer.chat("hi") == tiny.tokenizer.chat("hi")
    assert model.max_context == tiny.max_context
    # Weights pass through float16 on the way. Wrong order of the rotary rows would be off by whole units.
    np.testing.assert_allclose(model.scorer().score(ids, 5), tiny.scorer().score(ids, 5), atol=0.05)


def test_untied_embeddings(tiny_folder: Path, tmp_path: Path) -> None:
    import mlx.core as mx

    head = mx.zeros((300, 32))
    out = tmp_path / "out"
    out.mkdir()
    gguf.convert(write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf", weights={"output.weight": head}), out)
    assert json.loads((out / "config.json").read_text())["tie_word_embeddings"] is False
    assert not load(str(out)).scorer().score([5, 6], 1).any()


def refusal(folder: Path, tmp_path: Path, metadata: dict[str, Any], weights: dict[str, Any] | None = None) -> str:
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(UnsupportedModelError) as caught:
        gguf.convert(write_tiny_gguf(folder, tmp_path / "tiny.gguf", metadata, weights), out)
    return str(caught.value)


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        ({"general.architecture": "phi3"}, "'phi3'"),
        ({"tokenizer.ggml.model": "llama"}, "type 'llama'"),
        ({"tokenizer.ggml.pre": "deepseek-llm"}, "'deepseek-llm'"),
        ({"tokenizer.ggml.tokens": None}, "no vocabulary"),
        ({"llama.block_count": None}, "llama.block_count"),
        ({"llama.rope.scaling.type": "yarn"}, "'yarn'"),
    ],
)
def test_what_cannot_be_converted_is_named(
    tiny_folder: Path, tmp_path: Path, metadata: dict[str, Any], named: str
) -> None:
    assert named in refusal(tiny_folder, tmp_path, metadata)


def test_a_tensor_that_llama_does_not_have_is_named(tiny_folder: Path, tmp_path: Path) -> None:
    import mlx.core as mx

    extra = {"blk.0.ffn_gate_inp.weight": mx.zeros((4, 32))}
    assert "ffn_gate_inp" in refusal(tiny_folder, tmp_path, {}, extra)


def test_rope_factors_of_llama_3_become_its_rule() -> None:
    config = {"head_dim": 64, "rope_theta": 500_000.0}
    # From the definition: wavelengths under 8192/4 keep their speed, those over 8192 slow down 32-fold.
    factors = []
    for i in range(32):
        wavelength = 2 * np.pi * 500_000.0 ** (i / 32)
        smooth = np.clip((8192 / wavelength - 1) / 3, 0, 1)
        factors.append(1 / ((1 - smooth) / 32 + smooth))
    assert factors[0] == 1 and factors[-1] == 32
    scaling = gguf._llama3_scaling(factors, config)
    assert scaling["rope_type"] == "llama3" and scaling["factor"] == 32
    with pytest.raises(UnsupportedModelError, match="Llama 3"):
        gguf._llama3_scaling([1.0] * 31 + [8.0], config)


@pytest.mark.parametrize("keep", [0, 3, 23, 40, 5_000, 9_000])
def test_a_truncated_file(tiny_folder: Path, tmp_path: Path, keep: int) -> None:
    path = write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UnsupportedModelError, match="not a complete GGUF"):
        gguf.convert(path, tmp_path)


def test_a_file_without_its_last_bytes(tiny_folder: Path, tmp_path: Path) -> None:
    path = write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf")
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(UnsupportedModelError, match="not a complete GGUF"):
        gguf.convert(path, tmp_path)


def test_no_damage_to_the_header_ends_the_process(tiny_folder: Path, tmp_path: Path) -> None:
    """MLX's own reader crashes on lengths that cannot be; whatever passes the check must be safe to read."""
    whole = write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf").read_bytes()
    path, refused = tmp_path / "damaged.gguf", 0
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        at = int(rng.integers(0, 12_000))
        damaged[at : at + 8] = rng.bytes(8)
        path.write_bytes(damaged)
        try:
            check_gguf(path)
        except UnsupportedModelError as exc:
            refused += 1
            assert exc.remedy
    assert refused > 100


@pytest.mark.parametrize("kind", [12, 99])
def test_weights_in_another_form_are_named(tiny_folder: Path, tmp_path: Path, kind: int) -> None:
    path = write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf")
    data = bytearray(path.read_bytes())
    # name, dimensions (1), length (32), then the type of the tensor
    at = data.index(b"output_norm.weight") + len("output_norm.weight") + 4 + 8
    data[at : at + 4] = kind.to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(UnsupportedModelError, match="as Q4_K" if kind == 12 else "as type 99"):
        check_gguf(path)


def test_a_short_write_is_a_full_disk(tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf")
    monkeypatch.setattr("mlx.core.save_safetensors", lambda name, *a, **k: Path(name).write_bytes(b"cut"))
    with pytest.raises(OSError, match="No space|cut short"):
        gguf.convert(path, tmp_path)


@pytest.mark.parametrize(
    ("pre", "pieces"),
    [
        ("smollm", ["Ġ", "2", "0", "2", "4"]),
        ("gpt-2", ["Ġ2024"]),
        ("llama-bpe", ["Ġ", "202", "4"]),
        ("qwen2", ["Ġ", "2", "0", "2", "4"]),
    ],
)
def test_each_rule_cuts_numbers_in_its_own_way(pre: str, pieces: list[str]) -> None:
    from tokenizers import Tokenizer, models

    from specviz.models.gguf_tokenizer import _set_pre_tokenizer

    tokenizer = Tokenizer(models.BPE())
    _set_pre_tokenizer(tokenizer, pre)
    cut = [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str("in 2024")]
    assert cut == ["in", *pieces]
