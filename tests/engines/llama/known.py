"""Writes the small model of `specviz.engines.llama.self_test`: `python -m tests.engines.llama.known`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from specviz.engines.llama.self_test import FILE, IDS

WIDTH, WIDE, HEADS, TOKENS = 32, 64, 2, 24


def write_known(path: Path) -> None:
    """A Llama of one layer in Q8_0, with weights of a seed and no tokenizer."""
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(WIDE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(TOKENS)
    writer.add_tokenizer_model("no_vocab")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    rng = np.random.default_rng(7)
    kv = WIDTH // HEADS
    shapes = {
        "token_embd": (TOKENS, WIDTH), "output_norm": (WIDTH,), "blk.0.attn_norm": (WIDTH,), "blk.0.ffn_norm": (WIDTH,),
        "blk.0.attn_q": (WIDTH, WIDTH), "blk.0.attn_k": (kv, WIDTH), "blk.0.attn_v": (kv, WIDTH),
        "blk.0.attn_output": (WIDTH, WIDTH), "blk.0.ffn_gate": (WIDE, WIDTH), "blk.0.ffn_up": (WIDE, WIDTH),
        "blk.0.ffn_down": (WIDTH, WIDE),
    }  # fmt: skip
    form = gguf.GGMLQuantizationType.Q8_0
    for name, shape in shapes.items():
        values = rng.normal(size=shape).astype(np.float32) * np.float32(0.5)
        if len(shape) == 1:
            writer.add_tensor(f"{name}.weight", values + np.float32(1))
        else:
            writer.add_tensor(f"{name}.weight", gguf.quants.quantize(values, form), raw_dtype=form)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write_known(FILE)
    from specviz.engines.llama.self_test import logits

    print(FILE.stat().st_size, "bytes;", IDS, np.round(logits(), 3).tolist())
