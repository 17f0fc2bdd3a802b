"""A GGUF file of a few hundred kilobytes that every reader takes, written by llama.cpp's own Python package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.engines.tiny import TEMPLATE, write_tiny_tokenizer

WIDTH, WIDE, HEADS, KV_HEADS, LAYERS, CONTEXT = 64, 128, 4, 2, 2, 512


def write_sound_gguf(path: Path, forms: Mapping[str, str] | None = None, seed: int = 0) -> Path:
    """Write a Llama of two layers with a byte-level vocabulary of 300 tokens; returns `path`.

    Args:
        forms: by part of a name ("attn_q"): how to store the weights; the others are Q8_0, and norms F32.
        seed: of the weights.
    """
    import gguf

    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.parent / f"{path.name}.tokenizer"
    folder.mkdir()
    write_tiny_tokenizer(folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    special = {token["id"] for token in tokenizer["added_tokens"]}
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("sound")
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(WIDE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(pieces))
    writer.add_file_type(7)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(pieces)
    writer.add_token_types([3 if i in special else 1 for i in range(len(pieces))])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)

    rng = np.random.default_rng(seed)
    shapes = {"token_embd": (len(pieces), WIDTH), "output_norm": (WIDTH,)}
    for layer in range(LAYERS):
        block = {
            "attn_norm": (WIDTH,),
            "attn_q": (WIDTH, WIDTH),
            "attn_k": (WIDTH * KV_HEADS // HEADS, WIDTH),
            "attn_v": (WIDTH * KV_HEADS // HEADS, WIDTH),
            "attn_output": (WIDTH, WIDTH),
            "ffn_norm": (WIDTH,),
            "ffn_gate": (WIDE, WIDTH),
            "ffn_up": (WIDE, WIDTH),
            "ffn_down": (WIDTH, WIDE),
        }
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    for name, shape in shapes.items():
        if len(shape) == 1:
            writer.add_tensor(f"{name}.weight", np.ones(shape, np.float32))
            continue
        form = gguf.GGMLQuantizationType[(forms or {}).get(name.split(".")[-1], "Q8_0")]
        weights = (rng.standard_normal(shape) * 0.3).astype(np.float32)
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(weights, form), raw_dtype=form)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
