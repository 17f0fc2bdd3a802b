"""A random Llama of a few thousand weights with a real byte-level tokenizer, as a folder that mlx-lm loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specviz.engines.mlx.blas import use_fast_blas

TEMPLATE = (
    "{% for m in messages %}"
    "{% if loop.first and m.role != 'system' %}<|im_start|>system\nBe tiny.<|im_end|>\n{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEXT = "the sky is blue because the air scatters blue light more than red light, and the sun is bright. " * 3


def write_tiny_model(folder: Path, seed: int = 0, padding: int = 0, **config: Any) -> Path:
    """Fill `folder` and return it.

    Args:
        seed: of the weights.
        padding: rows of the model behind the last token of the tokenizer.
        config: entries of config.json to add or change.
    """
    folder.mkdir(parents=True, exist_ok=True)
    size = write_tiny_tokenizer(folder)
    write_tiny_weights(folder, size + padding, seed, **{"eos_token_id": 2} | config)
    return folder


def write_tiny_weights(folder: Path, vocab_size: int, seed: int = 0, **config: Any) -> None:
    """Write config.json and model.safetensors."""
    use_fast_blas()
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.models.llama import Model, ModelArgs

    full = {
        "model_type": "llama",
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "intermediate_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "vocab_size": vocab_size,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
    } | config
    args: ModelArgs = ModelArgs.from_dict(full)
    model = Model(args)
    keys = iter(mx.random.split(mx.random.key(seed), 100))
    # Larger than a fresh initialisation: rows of logits that differ clearly make better tests.
    weights = {
        name: mx.ones(w.shape) if "norm" in name else mx.random.normal(w.shape, key=next(keys)) * 0.3
        for name, w in dict(tree_flatten(model.parameters())).items()
    }
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(full))


def write_tiny_tokenizer(folder: Path, size: int = 300, special: tuple[str, ...] = SPECIAL) -> int:
    """Write the tokenizer's files; returns the number of tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": special[2],
        "bos_token": special[1],
        "chat_template": TEMPLATE,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return int(tokenizer.get_vocab_size())
