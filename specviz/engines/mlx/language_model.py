"""A language model that MLX runs: weights, tokenizer, and a cache of its own for every user."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.core.errors import UnsupportedModelError
from specviz.core.vocabulary import Vocabulary
from specviz.engines.mlx.blas import use_fast_blas
from specviz.engines.mlx.scorer import MlxScorer, check_rewindable, empty_cache
from specviz.engines.tokenizer import ModelTokenizer

_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len")
_CONTEXT_UNKNOWN = 2048


@dataclass(frozen=True, slots=True, eq=False)
class LanguageModel:
    """A loaded model. Only the thread that loaded it may use it: MLX arrays belong to their thread.

    Attributes:
        name: as the user gave it.
        model: mlx-lm's `mlx.nn.Module`, a class that has no type stubs.
        tokenizer: of the same folder.
        config: config.json.
        vocab_size: width of a row of logits, padding included.
        max_context: tokens.
        parameters: their number.
        precision: number format of the weights while the model runs: "float32" or "as stored".
        engine: what runs it.
        model_file: or the first of several.
    """

    name: str
    model: Any
    tokenizer: ModelTokenizer
    config: dict[str, Any]
    vocab_size: int
    max_context: int
    parameters: int
    precision: str
    engine: str = "mlx"
    model_file: str = "model.safetensors"

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's."""
        return self.tokenizer.vocabulary

    @property
    def stop_ids(self) -> frozenset[int]:
        """Tokens that end a generation."""
        return self.tokenizer.stop_ids

    @property
    def blas(self) -> str:
        """Library that multiplies its matrices; empty on a GPU."""
        return "" if _on_gpu() else use_fast_blas().name

    def scorer(self) -> MlxScorer:
        """A new, empty cache over these weights."""
        return MlxScorer(self.name, self.model, self.tokenizer.vocab_size, self.max_context)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """A module that is ready to run, with what is known about it.

    Attributes: see `LanguageModel`.
    """

    model: Any
    config: dict[str, Any]
    max_context: int
    parameters: int
    precision: str


def load(name: str, folder: Path, on_step: Callable[[int], None] = lambda step: None) -> LanguageModel:
    """Load a model from a folder that mlx-lm knows: see `load_weights`.

    Args:
        name: for messages.
        on_step: called with 0, 1 and 2: how many of the two parts, tokenizer and weights, are loaded.

    Raises:
        UnsupportedModelError: incomplete folder, unknown architecture, or a cache that cannot be rewound.
    """
    on_step(0)
    use_fast_blas()
    tokenizer = ModelTokenizer(folder)
    on_step(1)
    weights = load_weights(name, folder)
    on_step(2)
    config = weights.config
    return LanguageModel(
        name=name,
        model=weights.model,
        tokenizer=tokenizer,
        config=config,
        vocab_size=int(config.get("text_config", config).get("vocab_size", tokenizer.vocab_size)),
        max_context=weights.max_context,
        parameters=weights.parameters,
        precision=weights.precision,
    )


def load_weights(name: str, folder: Path) -> Weights:
    """Load a folder's module, without a tokenizer.

    On a CPU the weights become float32, because MLX does not use the BLAS for quantised weights. On x86, exponentials
    are then computed by operations that MLX vectorises (`cpu_exp`). On Metal and CUDA, and where float32 does not fit
    into memory, the weights stay as they are stored.

    Raises:
        UnsupportedModelError: mlx-lm cannot load it, or its cache cannot be rewound.
    """
    use_fast_blas()
    model, config = _load_module(folder)
    check_rewindable(empty_cache(model), name)
    parameters = _count(model)
    precision = "as stored"
    if not _on_gpu() and parameters * 4 < 0.7 * _memory_bytes():
        model, precision = _to_float32(model), "float32"
        _vectorise(model)
    _evaluate(model)
    return Weights(model, config, _max_context(folder, config), parameters, precision)


def _max_context(folder: Path, config: dict[str, Any]) -> int:
    config = config.get("text_config", config)
    key = next((k for k in _CONTEXT_KEYS if config.get(k)), None)
    if key is None:
        return _CONTEXT_UNKNOWN
    try:
        return int(config[key])
    except (TypeError, ValueError) as exc:
        raise UnsupportedModelError(
            f"`{key}` in {folder / 'config.json'} must be a number of tokens, not {config[key]!r}.",
            "Correct it, or fetch the model again.",
        ) from exc


def _load_module(folder: Path) -> tuple[Any, dict[str, Any]]:
    from mlx_lm.utils import load_model

    try:
        model, config = load_model(folder, lazy=True)
    except (ValueError, KeyError, TypeError, RuntimeError, OSError, json.JSONDecodeError) as exc:
        raise UnsupportedModelError(
            f"The model in {folder} cannot be loaded: {exc}.", "Give a folder that mlx-lm loads."
        ) from exc
    return model, config


def _vectorise(model: Any) -> None:
    from specviz.engines.mlx.cpu_exp import vectorise

    if platform.machine() == "x86_64":
        vectorise(model)


def _count(model: Any) -> int:
    from mlx_lm import utils

    count: Any = utils.get_total_parameters  # has no return annotation
    return int(count(model))


def _on_gpu() -> bool:
    import mlx.core as mx

    return bool(mx.default_device().type == mx.DeviceType.gpu)


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _to_float32(model: Any) -> Any:
    import mlx.core as mx
    from mlx_lm.utils import dequantize_model

    # Scales first: a weight that is computed in float16 would be rounded twice.
    model.set_dtype(mx.float32)
    return dequantize_model(model)


def _evaluate(model: Any) -> None:
    """Read the weights now, so that the first token does not wait for it."""
    import mlx.core as mx

    mx.eval(model.parameters())
