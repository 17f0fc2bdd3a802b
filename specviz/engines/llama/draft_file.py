"""A distilled draft, which is a folder in mlx-lm's layout, written as a GGUF file. Nothing here needs MLX."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.errors import UnsupportedModelError

_TOP_LEVEL = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_IN_BLOCK = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "input_layernorm": "attn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_attention_layernorm": "ffn_norm",
}
_BLOCK = 32  # values of a block of Q8_0
_CONTEXT_UNKNOWN = 2048

Floats = NDArray[np.float32]


def write_draft(folder: Path, path: Path) -> None:
    """Write the weights of a draft to a GGUF file: matrices in Q8_0, norms in float32, no tokenizer.

    Args:
        folder: a complete distilled draft, see `specviz.engines.distilled`.
        path: of the file; its folder exists.

    Raises:
        UnsupportedModelError: the weights are damaged, or do not fit config.json.
        OSError: the disk is full or not writable.
    """
    import gguf

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    writer = gguf.GGUFWriter(path, "llama")
    try:
        _describe(writer, config)
        for name, values in _weights(folder, config):
            if values.ndim == 1 or values.shape[-1] % _BLOCK:
                writer.add_tensor(name, values)
            else:
                form = gguf.GGMLQuantizationType.Q8_0
                writer.add_tensor(name, gguf.quants.quantize(values, form), raw_dtype=form)
    except (KeyError, TypeError, ValueError) as exc:
        raise UnsupportedModelError(
            f"The weights in {folder} do not fit its config.json: {type(exc).__name__}: {exc}.",
            "Fetch or distil the draft again.",
        ) from exc
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: Any, config: Mapping[str, Any]) -> None:
    import gguf

    heads = config["num_attention_heads"]
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config.get("max_position_embeddings") or _CONTEXT_UNKNOWN)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(float(config.get("rope_theta") or 10_000.0))
    writer.add_rope_dimension_count(_head_dim(config))
    writer.add_key_length(_head_dim(config))
    writer.add_value_length(_head_dim(config))
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    # The draft reads and writes its target's ids, by a map. The library wants the name of a tokenizer.
    writer.add_tokenizer_model("no_vocab")


def _head_dim(config: Mapping[str, Any]) -> int:
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


def _weights(folder: Path, config: Mapping[str, Any]) -> Iterator[tuple[str, Floats]]:
    """Names in GGUF and values of all weights."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(folder / "model.safetensors", "np") as file:
            names = set(file.keys())
            for name in sorted(n for n in names if n.endswith(".weight")):
                module = name.removesuffix(".weight")
                scales = f"{module}.scales"
                if scales in names:
                    values = dequantised(
                        file.get_tensor(name),
                        file.get_tensor(scales),
                        file.get_tensor(f"{module}.biases"),
                        int(config["quantization"]["bits"]),
                    )
                else:
                    values = file.get_tensor(name).astype(np.float32)
                yield _gguf_name(module), _in_pairs(values, module, config)
    except (OSError, SafetensorError) as exc:
        raise UnsupportedModelError(
            f"The weights in {folder} cannot be read: {exc}.", "Fetch the draft again."
        ) from exc


def dequantised(packed: NDArray[np.uint32], scales: NDArray[Any], biases: NDArray[Any], bits: int) -> Floats:
    """The values of MLX's affine quantisation: scale times number plus bias, by group.

    Args:
        packed: (rows, columns · bits / 32); each row is a stream of numbers, the lowest bits first.
        scales, biases: (rows, groups).

    Returns:
        (rows, columns)
    """
    stream = np.unpackbits(np.ascontiguousarray(packed).view(np.uint8), axis=-1, bitorder="little")
    numbers = stream.reshape(len(packed), -1, bits) @ (1 << np.arange(bits)).astype(np.float32)
    grouped = numbers.reshape(len(packed), scales.shape[-1], -1)
    values = grouped * scales.astype(np.float32)[..., None] + biases.astype(np.float32)[..., None]
    return np.ascontiguousarray(values.reshape(len(packed), -1), dtype=np.float32)


def _in_pairs(values: Floats, module: str, config: Mapping[str, Any]) -> Floats:
    """Rows of q and k in the order of GGUF: the two numbers that rotary embedding turns together are neighbours."""
    if not module.endswith(("self_attn.q_proj", "self_attn.k_proj")) or config.get("rope_traditional"):
        return values
    half = _head_dim(config) // 2
    halves = values.reshape(-1, 2, half, values.shape[-1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(values.shape))


def _gguf_name(module: str) -> str:
    """`model.layers.3.self_attn.q_proj` → `blk.3.attn_q.weight`."""
    if module in _TOP_LEVEL:
        return f"{_TOP_LEVEL[module]}.weight"
    layer, _, inner = module.removeprefix("model.layers.").partition(".")
    return f"blk.{int(layer)}.{_IN_BLOCK[inner]}.weight"
