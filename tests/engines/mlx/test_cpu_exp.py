"""The vectorised exponential changes no result, to single precision."""

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.base import create_causal_mask

from specviz.engines.mlx import cpu_exp
from specviz.engines.mlx.cpu_exp import attend, exp, swiglu, vectorise


def test_exp_agrees_with_double_precision_and_underflows_to_nothing() -> None:
    x = np.concatenate([np.linspace(-86, 0, 20_001), [-1e4, -np.inf, 0.0]]).astype(np.float32)
    ours = np.array(exp(mx.array(x)))
    true = np.exp(x.astype(np.float64))
    assert ours[-1] == pytest.approx(1.0, abs=2e-7) and (ours[-3:-1] < 1e-37).all()
    assert np.abs(ours[:-3] / true[:-3] - 1).max() < 5e-6


@pytest.mark.parametrize("length", [1, 2, 9])
@pytest.mark.parametrize("past", [0, 1, 70])
@pytest.mark.parametrize("kind", ["none", "causal", "boolean", "additive"])
def test_it_agrees_with_mlx(length: int, past: int, kind: str) -> None:
    mx.random.seed(length + past)
    total = past + length
    queries = mx.random.normal((2, 6, length, 16)) * 3
    keys, values = (mx.random.normal((2, 2, total, 16)) for _ in range(2))
    boolean = create_causal_mask(length, past)
    mask = {"none": None, "causal": "causal", "boolean": boolean, "additive": mx.where(boolean, 0.0, -1e9)}[kind]
    theirs = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=0.25, mask=mask)
    ours = attend(queries, keys, values, 0.25, mask)
    assert np.abs(np.array(ours) - np.array(theirs)).max() < 1e-5


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_a_model_gives_the_same_logits_with_and_without(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlx_lm.models import llama, qwen2
    from mlx_lm.models.cache import make_prompt_cache

    module = {"llama": llama, "qwen2": qwen2}[kind]
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64, "num_attention_heads": 4}
    rest = {"num_key_value_heads": 2, "rms_norm_eps": 1e-5, "vocab_size": 50, "tie_word_embeddings": True}
    args = module.ModelArgs.from_dict({"model_type": kind, **sizes, **rest})
    mx.random.seed(0)
    model = module.Model(args)

    def logits() -> np.ndarray:
        cache = make_prompt_cache(model)
        first = model(mx.array([[1, 2, 3, 4, 5]]), cache=cache)
        return np.concatenate([np.array(first[0]), np.array(model(mx.array([[6]]), cache=cache)[0])])

    monkeypatch.setattr(cpu_exp, "WORTHWHILE", 0)
    before = logits()
    assert vectorise(model) == 4
    assert vectorise(model) == 0
    assert np.abs(logits() - before).max() < 1e-4


def test_swiglu_agrees_with_mlx_on_both_sides_of_zero() -> None:
    from mlx_lm.models import activations

    gate = mx.concatenate([mx.linspace(-90, 90, 10_001), mx.array([-1e4, 0.0, 1e4])])
    ours, theirs = (np.array(f(gate, mx.full(gate.shape, 0.5))) for f in (swiglu, activations.swiglu))
    assert np.isfinite(ours).all()
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_other_architectures_are_left_alone() -> None:
    from mlx.nn.layers.linear import Linear

    assert vectorise(Linear(4, 4)) == 0
