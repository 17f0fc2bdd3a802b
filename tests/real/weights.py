"""Writes the local target's weights as a folder that servers load: dequantised, in float32, as Hugging Face has them.

python -m tests.real.weights FOLDER [MODEL]
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from specviz.engines.mlx.blas import use_fast_blas
from specviz.store import store

#: Of the configuration; what is left out has the right default.
_KEPT = (
    "hidden_size",
    "num_hidden_layers",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "rms_norm_eps",
    "rope_theta",
    "max_position_embeddings",
    "vocab_size",
    "tie_word_embeddings",
    "bos_token_id",
    "eos_token_id",
)
_LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "torch_dtype": "float32",
}


def write(model: Path, folder: Path) -> None:
    """Write a Llama-like model that was converted from a GGUF file.

    Raises:
        AssertionError: it is another kind of model, whose own repository can be served as it is.
    """
    use_fast_blas()
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.utils import dequantize_model, load_model

    module, config = load_model(model, lazy=True)
    assert config["model_type"] == "llama" and config.get("rope_traditional"), "serve the model's own repository"
    module.set_dtype(mx.float32)
    weights = dict(tree_flatten(dequantize_model(module).parameters()))
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for name, weight in weights.items():
        for kind, count in heads.items():
            if f".{kind}." in name:
                weights[name] = _in_halves(weight, count)
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(_LLAMA | {k: config[k] for k in _KEPT if k in config}, indent=2))
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(model / name, folder / name)


def _in_halves(weight: Any, heads: int) -> Any:
    """Rows for a rotary embedding that turns the halves of a head, out of rows for one that turns neighbours."""
    rows, width = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, width).swapaxes(1, 2).reshape(rows, width)


def main() -> int:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="must not exist yet")
    parser.add_argument("model", nargs="?", default="smollm2-135m")
    asked = parser.parse_args()
    write(store.pull(asked.model), asked.folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
