from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.mlx_rules import check_for_mlx
from specviz.engines.mlx import convert
from specviz.engines.mlx.language_model import LanguageModel
from specviz.setup.loading import load_mlx_model
from specviz.store import store
from tests.engines.raw_gguf import LLAMA, header
from tests.engines.tiny_gguf import write_tiny_gguf

TEXT = "the sky 2024 is blue<|im_end|>"


def test_a_converted_file_scores_as_the_model_that_it_came_from(
    tiny: LanguageModel, tiny_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    convert.convert(write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf"), out)
    model = load_mlx_model(str(out))
    ids = tiny.tokenizer.encode(TEXT)
    assert model.tokenizer.encode(TEXT) == ids
    assert model.tokenizer.stop_ids == tiny.tokenizer.stop_ids
    assert model.tokenizer.chat("hi") == tiny.tokenizer.chat("hi")
    assert model.max_context == tiny.max_context
    # The conversion rounds weights to float16. A wrong order of the rotary rows would differ by more than 1.
    np.testing.assert_allclose(model.scorer().score(ids, 5), tiny.scorer().score(ids, 5), atol=0.05)


def test_untied_embeddings(tiny_folder: Path, tmp_path: Path) -> None:
    import mlx.core as mx

    head = mx.zeros((300, 32))
    out = tmp_path / "out"
    out.mkdir()
    convert.convert(write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf", weights={"output.weight": head}), out)
    assert json.loads((out / "config.json").read_text())["tie_word_embeddings"] is False
    assert not load_mlx_model(str(out)).scorer().score([5, 6], 1).any()


def refusal(folder: Path, tmp_path: Path, metadata: dict[str, Any], weights: dict[str, Any] | None = None) -> str:
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(UnsupportedModelError) as caught:
        convert.convert(write_tiny_gguf(folder, tmp_path / "tiny.gguf", metadata, weights), out)
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


def u32(value: Any) -> Any:
    import mlx.core as mx

    return mx.array(value, dtype=mx.uint32)


KEY_OF: dict[str, tuple[str, Any]] = {
    "kv heads per layer": ("llama.attention.head_count_kv", [2, 2]),
    "no heads": ("llama.attention.head_count", 0),
    "heads as text": ("llama.attention.head_count", "4"),
    "heads that do not divide the width": ("llama.attention.head_count", 5),
    "kv heads that do not divide the heads": ("llama.attention.head_count_kv", 3),
    "no kv heads": ("llama.attention.head_count_kv", 0),
    "no head width": ("llama.attention.key_length", 0),
    "width as a list": ("llama.embedding_length", [32, 32]),
    "width as a list of texts": ("llama.embedding_length", ["32"]),
    "more layers than there are": ("llama.block_count", 3),
    "billions of layers": ("llama.block_count", 2**32 - 1),
    "fewer layers than there are": ("llama.block_count", 1),
    "no layers": ("llama.block_count", 0),
    "layers as a fraction": ("llama.block_count", 2.5),
    "layers as yes": ("llama.block_count", True),
    "no context": ("llama.context_length", 0),
    "context as text": ("llama.context_length", "long"),
    "rope base as a list": ("llama.rope.freq_base", [1.0, 2.0]),
    "rope base not a number": ("llama.rope.freq_base", float("nan")),
    "epsilon negative": ("llama.attention.layer_norm_rms_epsilon", -1.0),
    "rotated part as text": ("llama.rope.dimension_count", "all"),
    "scaling as a number": ("llama.rope.scaling.type", 2),
    "scaling as a list": ("llama.rope.scaling.type", [2, 3]),
    "end as text": ("tokenizer.ggml.eos_token_id", "</s>"),
    "end behind the vocabulary": ("tokenizer.ggml.eos_token_id", 300),
    "beginning behind the vocabulary": ("tokenizer.ggml.bos_token_id", 2**32 - 1),
    "end as a list": ("tokenizer.ggml.eos_token_id", [1, 2]),
    "padding as text": ("tokenizer.ggml.padding_token_id", "none"),
    "flag as text": ("tokenizer.ggml.add_bos_token", "yes"),
    "types as text": ("tokenizer.ggml.token_type", "all normal"),
    "types as one number": ("tokenizer.ggml.token_type", 1),
    "types as fractions": ("tokenizer.ggml.token_type", [1.0, 2.0]),
    "tokens as numbers": ("tokenizer.ggml.tokens", [1, 2]),
    "tokens as text": ("tokenizer.ggml.tokens", "abc"),
    "merges as numbers": ("tokenizer.ggml.merges", [1, 2]),
    "merges as one number": ("tokenizer.ggml.merges", 1),
    "rule as a list": ("tokenizer.ggml.pre", ["a"]),
    "tokenizer as a number": ("tokenizer.ggml.model", 1),
    "template as a list": ("tokenizer.chat_template", ["a", "b"]),
}


@pytest.mark.parametrize("odd", KEY_OF)
def test_odd_metadata_is_refused_by_its_key(cache_folder: Path, tiny_folder: Path, tmp_path: Path, odd: str) -> None:
    import mlx.core as mx

    key, value = KEY_OF[odd]
    numbers = value if isinstance(value, list) else [value]
    if not isinstance(numbers[0], str):
        value = u32(value) if all(type(n) is int for n in numbers) else mx.array(value)
    path = write_tiny_gguf(tiny_folder, tmp_path / "odd.gguf", {key: value})
    with pytest.raises(UnsupportedModelError) as caught:
        store.pull(str(path))
    assert key in caught.value.message
    assert caught.value.remedy
    assert store.local_path(str(path)) is None


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("llama.embedding_length", "(300, 32) in token_embd.weight, and its metadata give (300, 64)"),
        ("llama.feed_forward_length", "(64, 32) in blk.0.ffn_gate.weight, and its metadata give (96, 32)"),
    ],
)
def test_metadata_of_another_model(tiny_folder: Path, tmp_path: Path, key: str, named: str) -> None:
    assert named in refusal(tiny_folder, tmp_path, {key: u32(64 if "embedding" in key else 96)})


@pytest.mark.parametrize("missing", ["blk.1.ffn_up.weight", "token_embd.weight", "output_norm.weight"])
def test_a_missing_tensor_is_named(
    tiny_folder: Path, tmp_path: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = convert._read

    def without(path: Path) -> Any:
        weights, metadata = read(path)
        return {name: w for name, w in weights.items() if name != missing}, metadata

    monkeypatch.setattr(convert, "_read", without)
    assert f"has no {missing}" in refusal(tiny_folder, tmp_path, {})


def test_more_tokens_than_rows(tiny_folder: Path, tmp_path: Path) -> None:
    import mlx.core as mx

    assert "(250, 32) in token_embd.weight, and its metadata give (300, 32)" in refusal(
        tiny_folder, tmp_path, {}, {"token_embd.weight": mx.zeros((250, 32))}
    )


def test_columns_of_another_model(tiny_folder: Path, tmp_path: Path) -> None:
    import mlx.core as mx

    weights = {"blk.1.ffn_down.weight": mx.zeros((32, 96))}
    assert "(32, 96) in blk.1.ffn_down.weight" in refusal(tiny_folder, tmp_path, {}, weights)


def test_a_padding_id_that_means_none_is_no_reason_to_refuse(tiny_folder: Path, tmp_path: Path) -> None:
    changes = {"tokenizer.ggml.padding_token_id": u32(2**32 - 1)}
    convert.convert(write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf", changes), tmp_path)
    assert load_mlx_model(str(tmp_path)).vocab_size == 300


def test_rope_factors_that_cannot_be() -> None:
    for factors in ([0.0] * 4, [float("nan")] * 4, [float("inf")] * 4, [-1.0] * 4):
        with pytest.raises(UnsupportedModelError, match="rope_freqs"):
            convert._llama3_scaling(factors, {"head_dim": 8, "rope_theta": 10_000.0})


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
    scaling = convert._llama3_scaling(factors, config)
    assert scaling["rope_type"] == "llama3" and scaling["factor"] == 32
    with pytest.raises(UnsupportedModelError, match="Llama 3"):
        convert._llama3_scaling([1.0] * 31 + [8.0], config)


@pytest.mark.parametrize("keep", [0, 3, 23, 40, 5_000, 9_000])
def test_a_truncated_file(tiny_folder: Path, tmp_path: Path, keep: int) -> None:
    path = write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UnsupportedModelError, match="not a complete GGUF" if keep > 3 else "not a GGUF"):
        convert.convert(path, tmp_path)


def test_a_file_without_its_last_bytes(tiny_folder: Path, tmp_path: Path) -> None:
    path = write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf")
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(UnsupportedModelError, match="not a complete GGUF"):
        convert.convert(path, tmp_path)


def test_a_file_without_tensors_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "empty.gguf"
    path.write_bytes(header(0, 1, LLAMA))
    with pytest.raises(UnsupportedModelError, match="no vocabulary|type ''"):
        convert.convert(path, tmp_path)


@pytest.mark.parametrize("kind", [20, 999])
def test_weights_in_another_form_are_named(tiny_folder: Path, tmp_path: Path, kind: int) -> None:
    path = write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf")
    data = bytearray(path.read_bytes())
    # name, dimensions (1), length (32), then the type of the tensor
    at = data.index(b"output_norm.weight") + len("output_norm.weight") + 4 + 8
    data[at : at + 4] = kind.to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(UnsupportedModelError, match="as IQ4_NL" if kind == 20 else "as type 999"):
        check_for_mlx(path)


def test_a_short_write_is_a_full_disk(tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tiny_gguf(tiny_folder, tmp_path / "tiny.gguf")
    monkeypatch.setattr("mlx.core.save_safetensors", lambda name, *a, **k: Path(name).write_bytes(b"cut"))
    with pytest.raises(OSError, match="No space|cut short"):
        convert.convert(path, tmp_path)


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

    from specviz.engines.gguf.tokenizer import _set_pre_tokenizer

    tokenizer = Tokenizer(models.BPE())
    _set_pre_tokenizer(tokenizer, pre)
    cut = [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str("in 2024")]
    assert cut == ["in", *pieces]
