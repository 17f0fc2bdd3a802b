"""The student: a Llama of mlx-lm. It starts from layers of a Llama target, and is small and new for others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.errors import SettingsError
from specviz.core.ports import Scorer
from specviz.distill.arrays import flat
from specviz.engines.distilled import DraftVocabulary

if TYPE_CHECKING:
    from specviz.engines.mlx.language_model import LanguageModel

Floats = NDArray[np.float32]
Config = dict[str, Any]

LAYERS = 4
BITS = (4, 5, 6, 8, 16)
FULL_BITS = 16
#: Weights that share a scale when they are quantised.
GROUP = 64
_COPIED = (
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "rms_norm_eps",
    "rope_theta",
    "rope_traditional",
    "rope_scaling",
    "max_position_embeddings",
    "attention_bias",
    "mlp_bias",
    "tie_word_embeddings",
)
_SMALL: Config = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 192,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}


def default_layers(depth: int, count: int = LAYERS) -> tuple[int, ...]:
    """The first layers and the last one: those next to the tokens on both sides."""
    return tuple(range(depth)) if depth <= count else (*range(count - 1), depth - 1)


def is_llama(model: LanguageModel | None) -> bool:
    """Whether a Llama of mlx-lm can use the layers of this target as they are."""
    return model is not None and model.config.get("model_type") == "llama"


def check_layers(layers: tuple[int, ...], depth: int) -> None:
    """Refuse layers that the target does not have.

    Raises:
        SettingsError: no layer, one that the target does not have, or not in ascending order.
    """
    if not layers or any(not 0 <= i < depth for i in layers) or list(layers) != sorted(set(layers)):
        raise SettingsError(
            f"--layers must be ascending numbers from 0 to {depth - 1}, not {','.join(map(str, layers))!r}.",
            f"Try --layers {','.join(map(str, default_layers(depth)))}.",
        )


def config_of(model: LanguageModel | None, layers: tuple[int, ...], vocab_size: int, max_context: int) -> Config:
    """config.json of a student.

    Args:
        model: the target. Where it is no Llama the student is small and new, and `layers` is ignored.
        vocab_size: of the draft's own vocabulary.
        max_context: of the target.
    """
    if model is None or not is_llama(model):
        return _SMALL | {"vocab_size": vocab_size, "max_position_embeddings": max_context}
    copied = {key: model.config[key] for key in _COPIED if key in model.config}
    return {"model_type": "llama", **copied, "num_hidden_layers": len(layers), "vocab_size": vocab_size}


def embeddings_of(model: LanguageModel) -> Floats:
    """(rows, width) the target's embedding in float32."""
    return _dense(model.model.model.embed_tokens)


def initial_weights(model: LanguageModel, layers: tuple[int, ...], vocabulary: DraftVocabulary) -> dict[str, Any]:
    """Weights of the target for a student: the chosen layers, the rows of kept tokens, the last norm; MLX arrays."""
    import mlx.core as mx

    whole = model.model
    tokens = mx.array(vocabulary.tokens)
    weights = {"model.norm.weight": whole.model.norm.weight.astype(mx.float32)}
    weights["model.embed_tokens.weight"] = mx.array(_dense(whole.model.embed_tokens))[tokens]
    if "lm_head" in whole:
        weights["lm_head.weight"] = mx.array(_dense(whole.lm_head))[tokens]
    for own, theirs in enumerate(layers):
        for path, module in whole.model.layers[theirs].named_modules():
            if not module.children():
                weights |= _leaf(f"model.layers.{own}.{path}", module)
    return weights


def make(config: Config, weights: dict[str, Any] | None = None, seed: int = 0) -> Any:
    """A student in float32 with the given weights, which are MLX or numpy arrays, or with new ones.

    Raises:
        ValueError: a weight is missing, or of another shape.
    """
    import mlx.core as mx
    from mlx_lm.models.llama import Model, ModelArgs

    arguments: Any = ModelArgs.from_dict  # has no annotations
    student = Model(arguments(config))
    if weights is None:
        weights = _new_weights(student, seed)
    student.load_weights([(name, mx.array(w)) for name, w in weights.items()])
    student.set_dtype(mx.float32)
    mx.eval(student.parameters())
    return student


class StudentScorer(Scorer):
    """A student as `specviz.core.ports.Scorer` that takes target ids and gives rows over draft ids; without a cache."""

    def __init__(self, student: Any, vocabulary: DraftVocabulary) -> None:
        self._student, self._inputs = student, vocabulary.inputs

    def score(self, token_ids: Sequence[int], rows: int) -> Floats:
        """(rows, V) logits after each of the last `rows` target ids."""
        import mlx.core as mx

        logits = self._student(mx.array(self._inputs[np.asarray(token_ids)])[None])[0, -rows:]
        return np.array(logits.astype(mx.float32))

    def reset(self) -> None:
        """It has no cache."""


def rounded(config: Config, weights: dict[str, Any], bits: int) -> Any:
    """A student in float32 with the weights as they are after quantisation: a CPU is faster with these."""
    import mlx.core as mx
    from mlx_lm.utils import dequantize_model

    student = make(config, weights)
    if bits == FULL_BITS:
        return student
    quantised, _ = quantise(student, config, bits)
    quantised.set_dtype(mx.float32)  # the scales first: weights dequantised in float16 would be rounded twice
    return dequantize_model(quantised)


def quantise(student: Any, config: Config, bits: int) -> tuple[Any, Config]:
    """Quantise a student in place, by mlx-lm, with scales in float16; 16 bits leave all of it in float16.

    Returns:
        The student, and its config with the entry that loading needs.
    """
    import mlx.core as mx
    from mlx_lm.utils import quantize_model

    student.set_dtype(mx.float16)
    if bits == FULL_BITS:
        return student, dict(config)
    with redirect_stdout(StringIO()):  # it prints the resulting bits per weight
        model, quantised = quantize_model(student, dict(config), GROUP, bits)
    return model, quantised


def _new_weights(student: Any, seed: int) -> dict[str, Any]:
    """Normal draws with deviation width^-1/2, as in Llama, and ones for the norms; `seed` alone decides them."""
    import mlx.core as mx

    shapes = flat(student.parameters())
    keys = mx.random.split(mx.random.key(seed), len(shapes))
    return {
        name: mx.ones(w.shape) if w.ndim == 1 else mx.random.normal(w.shape, key=key) * w.shape[-1] ** -0.5
        for (name, w), key in zip(shapes.items(), keys, strict=True)
    }


def _leaf(path: str, module: Any) -> dict[str, Any]:
    import mlx.core as mx

    if "scales" not in module:
        return {f"{path}.{name}": w.astype(mx.float32) for name, w in flat(module.parameters()).items()}
    weights = {f"{path}.weight": mx.array(_dense(module))}
    return weights | ({f"{path}.bias": module.bias.astype(mx.float32)} if "bias" in module else {})


def _dense(module: Any) -> Floats:
    """The weight of a layer, quantised or not, in float32."""
    import mlx.core as mx

    weight = module.weight
    if "scales" in module:
        mode = getattr(module, "mode", "affine")
        weight = mx.dequantize(weight, module.scales, module.get("biases"), module.group_size, module.bits, mode=mode)
    return np.array(weight.astype(mx.float32))
