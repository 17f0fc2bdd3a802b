"""An in-process model: weights, tokenizer and as many independent caches as there are users of them."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.errors import UnsupportedModelError
from specviz.models import store
from specviz.models.blas import use_fast_blas
from specviz.models.distilled import is_distilled, read_description
from specviz.models.scorer import Scorer, check_rewindable, empty_cache
from specviz.models.tokenizer import ModelTokenizer
from specviz.ports import OnProgress, Progress

_CONTEXT_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len")
_CONTEXT_UNKNOWN = 2048


@dataclass(frozen=True, slots=True, eq=False)
class LanguageModel:
    """A loaded model. Only the thread that loaded it may use it: MLX arrays belong to their thread.

    Attributes:
        name: as it was asked for.
        model: mlx-lm's `mlx.nn.Module`, a class that has no type stubs.
        tokenizer: of the same folder.
        config: config.json.
        vocab_size: width of a row of logits, padding included.
        max_context: tokens.
        parameters: how many.
        precision: for a person: "float32" or "as stored".
    """

    name: str
    model: Any
    tokenizer: ModelTokenizer
    config: dict[str, Any]
    vocab_size: int
    max_context: int
    parameters: int
    precision: str

    def scorer(self) -> Scorer:
        """A new, empty cache over these weights."""
        return Scorer(self.name, self.model, self.tokenizer.vocab_size, self.max_context)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """A module that is ready to run, and what its config says.

    Attributes: see `LanguageModel`.
    """

    model: Any
    config: dict[str, Any]
    max_context: int
    parameters: int
    precision: str


def load(
    name_or_path: str,
    on_progress: OnProgress = lambda progress: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> LanguageModel:
    """Bring a model to this machine if it is not here yet, and load it: see `load_weights`.

    Args:
        name_or_path: see `specviz.models.store`.
        on_progress: told about download, conversion and load.
        cancelled: asked during a download, which ends it.

    Raises:
        UnknownModelError, DownloadError: see `specviz.models.store.pull`; a converted model whose files have changed
            on the disk is removed and refused with a `DownloadError`.
        UnsupportedModelError: incomplete folder, unknown architecture, or a cache that cannot be rewound.
    """
    folder = store.pull(name_or_path, on_progress, cancelled)
    if is_distilled(folder):
        raise UnsupportedModelError(
            f"{name_or_path} is a distilled draft, which has no tokenizer of its own.",
            f"Use it as the draft of {read_description(folder).target}: model:{name_or_path}",
        )
    on_progress(Progress(f"Loading {name_or_path}", 0, 2))
    use_fast_blas()
    try:
        tokenizer = ModelTokenizer(folder)
        on_progress(Progress(f"Loading {name_or_path}", 1, 2))
        weights = load_weights(name_or_path, folder)
    except UnsupportedModelError:
        store.refuse_damaged(name_or_path)
        raise
    on_progress(Progress(f"Loading {name_or_path}", 2, 2))
    config = weights.config
    return LanguageModel(
        name=name_or_path,
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

    On a CPU the weights become float32, since products with quantised weights do not reach the BLAS, and on x86
    exponentials are computed by operations that MLX vectorises (`cpu_exp`); on Metal and CUDA, and where float32
    would not fit the memory, they stay as they are stored.

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
            "Mend it, or fetch the model again.",
        ) from exc


def _load_module(folder: Path) -> tuple[Any, dict[str, Any]]:
    from mlx_lm.utils import load_model

    try:
        model, config = load_model(folder, lazy=True)
    except (ValueError, KeyError, TypeError, RuntimeError, OSError, json.JSONDecodeError) as exc:
        raise UnsupportedModelError(
            f"The model in {folder} cannot be loaded: {exc}.", "Any folder that mlx-lm loads will do."
        ) from exc
    return model, config


def _vectorise(model: Any) -> None:
    from specviz.models.cpu_exp import vectorise

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

    # Scales first: a weight put together in float16 would be rounded once more.
    model.set_dtype(mx.float32)
    return dequantize_model(model)


def _evaluate(model: Any) -> None:
    """Read the weights now, so that the first token does not pay for it."""
    import mlx.core as mx

    mx.eval(model.parameters())
