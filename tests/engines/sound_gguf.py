"""A GGUF file of a few hundred kilobytes that every reader takes, written by llama.cpp's own Python package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.engines.tiny import TEMPLATE, TEXT, write_tiny_tokenizer

WIDTH, WIDE, HEADS, KV_HEADS, LAYERS, CONTEXT = 128, 256, 2, 1, 2, 512


def write_sound_gguf(
    path: Path,
    forms: Mapping[str, str] | None = None,
    *,
    architecture: str = "llama",
    experts: int = 0,
    pieces: str = "gpt2",
    seed: int = 0,
) -> Path:
    """Write a model of two layers with a vocabulary of 300 tokens; returns `path`.

    Args:
        forms: by part of a name ("attn_q"): how to store the weights; the others are Q8_0, and norms F32.
        architecture: one that is built like Llama, perhaps with norms of q and k ("qwen3") or biases ("qwen2").
        experts: of which two are used for each token; 0 for none.
        pieces: kind of the tokenizer: "gpt2" is byte-level BPE, "llama" is SentencePiece.
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
    names = sorted(vocabulary, key=vocabulary.__getitem__)

    writer = gguf.GGUFWriter(path, architecture)
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
    writer.add_vocab_size(len(names))
    writer.add_file_type(7)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(2)
    writer.add_tokenizer_model(pieces)
    if pieces == "gpt2":
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(names)
        writer.add_token_types([3 if i in special else 1 for i in range(len(names))])
        writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    else:
        words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
        words += [f"\u2581{word}" for word in (*sorted(set(TEXT.split())), *"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")]
        names = words[: len(names)]
        writer.add_token_list(names)
        writer.add_token_scores([-float(i) for i in range(len(names))])
        writer.add_token_types([2, 3, 3, *[6] * 256, *[1] * (len(names) - 259)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)

    rng = np.random.default_rng(seed)
    for name, shape in _shapes(architecture, experts, len(names)).items():
        if len(shape) == 1:
            writer.add_tensor(name, (np.zeros if name.endswith("bias") else np.ones)(shape, np.float32))
            continue
        form = gguf.GGMLQuantizationType[(forms or {}).get(name.split(".")[-2], "Q8_0")]
        weights = (rng.standard_normal(shape) * 0.3).astype(np.float32)
        writer.add_tensor(name, gguf.quants.quantize(weights, form), raw_dtype=form)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _shapes(architecture: str, experts: int, tokens: int) -> dict[str, tuple[int, ...]]:
    """Rows first."""
    head, keys = WIDTH // HEADS, WIDTH * KV_HEADS // HEADS
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (tokens, WIDTH), "output_norm.weight": (WIDTH,)}
    for layer in range(LAYERS):
        block: dict[str, tuple[int, ...]] = {
            "attn_norm.weight": (WIDTH,),
            "attn_q.weight": (WIDTH, WIDTH),
            "attn_k.weight": (keys, WIDTH),
            "attn_v.weight": (keys, WIDTH),
            "attn_output.weight": (WIDTH, WIDTH),
            "ffn_norm.weight": (WIDTH,),
        }
        if architecture == "qwen2":
            block |= {"attn_q.bias": (WIDTH,), "attn_k.bias": (keys,), "attn_v.bias": (keys,)}
        if architecture == "qwen3":
            block |= {"attn_q_norm.weight": (head,), "attn_k_norm.weight": (head,)}
        feed = {"ffn_gate": (WIDE, WIDTH), "ffn_up": (WIDE, WIDTH), "ffn_down": (WIDTH, WIDE)}
        if experts:
            block["ffn_gate_inp.weight"] = (experts, WIDTH)
            block |= {f"{name}_exps.weight": (experts, *shape) for name, shape in feed.items()}
        else:
            block |= {f"{name}.weight": shape for name, shape in feed.items()}
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    return shapes
