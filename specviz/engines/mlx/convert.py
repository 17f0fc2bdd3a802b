"""Conversion of a GGUF file of the Llama family to a folder that mlx-lm loads.

Weights stay quantised: MLX reads Q4_0, Q4_1 and Q8_0 into its own 4- and 8-bit form, in groups of 32.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.metadata import LlamaMetadata, TokenizerMetadata, typed
from specviz.engines.gguf.mlx_rules import check_for_mlx
from specviz.engines.gguf.tokenizer import special_ids, write_tokenizer
from specviz.engines.mlx.blas import use_fast_blas

if TYPE_CHECKING:
    import mlx.core as mx

_ANOTHER = "Use another file, or the same model as an MLX folder or a Hugging Face repository."
_GROUP_SIZE = 32
_TOP_LEVEL = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_IN_BLOCK = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_norm": "post_attention_layernorm",
}
_PARTS = ("weight", "scales", "biases")
_LLAMA3_ROPE = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


def convert(gguf: Path, folder: Path) -> None:
    """Write config.json, model.safetensors, tokenizer and generation config into `folder`.

    Args:
        gguf: a complete GGUF file.
        folder: exists and is empty; half-filled when this raises.

    Raises:
        UnsupportedModelError: damaged file, or an architecture, tensor or tokenizer that cannot be used here.
        OSError: the disk is full or not writable.
    """
    use_fast_blas()
    import mlx.core as mx

    weights, metadata = _read(gguf)
    tokens = typed(metadata, TokenizerMetadata)
    write_tokenizer(tokens, folder)
    frequencies = weights.pop("rope_freqs.weight", None)
    # One float type for all: a float32 norm would make every activation float32 on a GPU.
    tensors = {_mlx_name(name): w.astype(mx.float16) if w.dtype == mx.float32 else w for name, w in weights.items()}
    config = _config(typed(metadata, LlamaMetadata), tokens, tensors)
    if frequencies is not None:
        config["rope_scaling"] = _llama3_scaling(cast("list[float]", frequencies.reshape(-1).tolist()), config)
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", special_ids(tokens))
    _save(folder / "model.safetensors", tensors)


def _read(gguf: Path) -> tuple[dict[str, mx.array], dict[str, object]]:
    import mlx.core as mx

    file = check_for_mlx(gguf)
    try:
        weights = mx.load(str(gguf), format="gguf")
    except (RuntimeError, ValueError) as exc:
        raise UnsupportedModelError(f"{gguf.name} cannot be read: {exc}.", "Fetch it again.") from exc
    return cast("dict[str, mx.array]", weights), file.metadata


def _mlx_name(name: str) -> str:
    """`blk.3.attn_q.weight` → `model.layers.3.self_attn.q_proj.weight`."""
    words = name.split(".")
    if words[-1] in _PARTS:
        if len(words) == 2 and words[0] in _TOP_LEVEL:
            return f"{_TOP_LEVEL[words[0]]}.{words[1]}"
        if len(words) == 4 and words[0] == "blk" and words[1].isdigit() and words[2] in _IN_BLOCK:
            return f"model.layers.{words[1]}.{_IN_BLOCK[words[2]]}.{words[3]}"
    raise UnsupportedModelError(
        f"The GGUF file has a tensor {name!r}, which a plain Llama model does not have.",
        "Use the same model as an MLX folder or a Hugging Face repository.",
    )


def _config(llama: LlamaMetadata, tokens: TokenizerMetadata, tensors: Mapping[str, mx.array]) -> dict[str, Any]:
    hidden, heads = llama.embedding_length, llama.head_count
    kv_heads = llama.head_count_kv or heads
    if heads % kv_heads:
        raise UnsupportedModelError(
            f"The GGUF file has {kv_heads} as llama.attention.head_count_kv, which does not divide {heads} heads.",
            _ANOTHER,
        )
    if llama.key_length is None and hidden % heads:
        raise UnsupportedModelError(
            f"The GGUF file has {heads} as llama.attention.head_count, which does not divide a width of {hidden}.",
            _ANOTHER,
        )
    head_dim = llama.key_length or hidden // heads
    if llama.rope_dimensions not in (None, head_dim):
        raise UnsupportedModelError(
            "The GGUF model rotates a part of each head only, which is not supported.", _ANOTHER
        )
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "num_hidden_layers": llama.block_count,
        "intermediate_size": llama.feed_forward_length,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "rms_norm_eps": llama.norm_epsilon,
        "rope_theta": llama.rope_base,
        # GGUF stores the rows of q and k in the order of interleaved rotary embedding.
        "rope_traditional": True,
        "max_position_embeddings": llama.context_length,
        "vocab_size": len(tokens.pieces),
        "tie_word_embeddings": "lm_head.weight" not in tensors,
        **special_ids(tokens),
    }
    if "model.embed_tokens.weight" in tensors:  # it may have padding rows after the last token
        config["vocab_size"] = max(config["vocab_size"], tensors["model.embed_tokens.weight"].shape[0])
    _check_tensors(config, tensors)
    if llama.rope_scaling == "linear" and llama.rope_factor:
        config["rope_scaling"] = {"type": "linear", "factor": llama.rope_factor}
    elif llama.rope_scaling == "linear":
        raise UnsupportedModelError("The GGUF file has no llama.rope.scaling.factor.", "Use a complete file.")
    elif llama.rope_scaling != "none":
        raise UnsupportedModelError(
            f"The GGUF model scales its positions by {llama.rope_scaling!r}, which is not supported.", _ANOTHER
        )
    bits = {
        name.removesuffix(".scales"): tensors[name.removesuffix("scales") + "weight"].shape[-1] // scales.shape[-1]
        for name, scales in tensors.items()
        if name.endswith(".scales")
    }
    if bits:
        # A group of 32 values in n bits takes n 32-bit words, so words per scale are bits per value.
        usual = min(bits.values())
        config["quantization"] = {"group_size": _GROUP_SIZE, "bits": usual} | {
            layer: {"group_size": _GROUP_SIZE, "bits": n} for layer, n in sorted(bits.items()) if n != usual
        }
    return config


def _check_tensors(config: Mapping[str, Any], tensors: Mapping[str, mx.array]) -> None:
    """Refuse a file whose weights do not have the shapes that its metadata gives: its folder would not load."""
    layers = {name.split(".")[2] for name in tensors if name.startswith("model.layers.")}
    if len(layers) != config["num_hidden_layers"]:
        raise UnsupportedModelError(
            f"The GGUF file has {config['num_hidden_layers']} as llama.block_count, and {len(layers)} layers.",
            "Use a complete file.",
        )
    hidden, wide = config["hidden_size"], config["intermediate_size"]
    queries, keys = (config[n] * config["head_dim"] for n in ("num_attention_heads", "num_key_value_heads"))
    shapes = {"model.embed_tokens": (config["vocab_size"], hidden), "model.norm": (hidden,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head"] = (config["vocab_size"], hidden)
    in_block = {
        "attn_q": (queries, hidden),
        "attn_k": (keys, hidden),
        "attn_v": (keys, hidden),
        "attn_output": (hidden, queries),
        "ffn_gate": (wide, hidden),
        "ffn_up": (wide, hidden),
        "ffn_down": (hidden, wide),
        "attn_norm": (hidden,),
        "ffn_norm": (hidden,),
    }
    for layer in range(len(layers)):
        shapes |= {f"model.layers.{layer}.{mlx}": in_block[gguf] for gguf, mlx in _IN_BLOCK.items()}
    for name, shape in shapes.items():
        weight, scales = tensors.get(f"{name}.weight"), tensors.get(f"{name}.scales")
        if weight is None:
            raise UnsupportedModelError(f"The GGUF file has no {_gguf_name(name)}.", "Use a complete file.")
        actual = tuple(weight.shape) if scales is None else (*scales.shape[:-1], scales.shape[-1] * _GROUP_SIZE)
        if actual != shape:
            raise UnsupportedModelError(
                f"The GGUF file has the shape {actual} in {_gguf_name(name)}, and its metadata give {shape}.",
                _ANOTHER,
            )


def _gguf_name(name: str) -> str:
    """The reverse of `_mlx_name`, for a message."""
    for gguf, mlx in (_IN_BLOCK | _TOP_LEVEL).items():
        if name.endswith(mlx):
            return f"{name.removesuffix(mlx).replace('model.layers', 'blk')}{gguf}.weight"
    return name


def _llama3_scaling(factors: list[float], config: Mapping[str, Any]) -> dict[str, Any]:
    """The rule that gives these factors per frequency. Files of Llama 3.1 and 3.2 hold only the factors."""
    other_rule = UnsupportedModelError(
        "The GGUF model scales its positions by a rule other than Llama 3's (rope_freqs.weight).", _ANOTHER
    )
    half, base = config["head_dim"] // 2, config["rope_theta"]
    factor = max(factors)
    if not 0 < factor < math.inf:
        raise other_rule
    low, high, trained = _LLAMA3_ROPE.values()
    expected = []
    for i in range(half):
        turns = trained / (2 * math.pi * base ** (i / half))  # over the context that it was trained on
        smooth = min(1.0, max(0.0, (turns - low) / (high - low)))
        expected.append(1.0 / ((1 - smooth) / factor + smooth))
    if len(factors) != half or any(abs(a - b) > 0.01 * b for a, b in zip(factors, expected, strict=True)):
        raise other_rule
    return {"rope_type": "llama3", "factor": factor, **_LLAMA3_ROPE}


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2), encoding="utf-8")


def _save(path: Path, tensors: dict[str, mx.array]) -> None:
    import mlx.core as mx

    try:
        mx.save_safetensors(str(path), tensors, metadata={"format": "mlx"})
    except (RuntimeError, ValueError) as exc:
        raise OSError(errno.EIO, f"{path.name} could not be written: {exc}") from exc
    # MLX does not check the result of a write: the only sign of a full disk is a short file.
    if os.path.getsize(path) < sum(t.nbytes for t in tensors.values()):
        raise OSError(errno.ENOSPC, f"{path.name} was cut short", str(path))
