from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.core.errors import PromptError, UnsupportedModelError
from specviz.engines.mlx.language_model import LanguageModel
from specviz.engines.mlx.scorer import CHUNK, check_rewindable
from specviz.setup.loading import load_mlx_model
from tests.engines.tiny import write_tiny_model

IDS = [int(i) for i in np.random.default_rng(0).integers(3, 290, 1200)]


def fresh(model: LanguageModel, ids: list[int]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """All rows in one pass over an empty cache: the reference."""
    import mlx.core as mx

    return np.array(model.model(mx.array([ids]))[0])


def test_rows_are_those_of_one_pass_without_a_cache(tiny: LanguageModel) -> None:
    rows = tiny.scorer().score(IDS[:40], 7)
    assert rows.shape == (7, tiny.vocab_size) and rows.dtype == np.float32
    np.testing.assert_allclose(rows, fresh(tiny, IDS[:40])[-7:], atol=1e-4)


def test_the_cache_holds_exactly_the_context_after_a_rejection(tiny: LanguageModel) -> None:
    scorer = tiny.scorer()
    scorer.score(IDS[:30], 5)
    rejected = [*IDS[:27], 5]
    rows = scorer.score(rejected, 2)
    assert scorer.cached == 28
    np.testing.assert_allclose(rows, fresh(tiny, rejected)[-2:], atol=1e-4)


@pytest.mark.parametrize("length", [CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_prefill_in_chunks_changes_nothing(tiny: LanguageModel, length: int) -> None:
    scorer = tiny.scorer()
    rows = scorer.score(IDS[:length], 3)
    assert scorer.cached == length
    np.testing.assert_allclose(rows, fresh(tiny, IDS[:length])[-3:], atol=1e-3)


def test_only_new_ids_are_fed(tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = tiny.scorer()
    scorer.score(IDS[:100], 1)
    fed: list[int] = []
    plain = type(tiny.model).__call__

    def counting(self: Any, inputs: Any, cache: Any = None, **rest: Any) -> Any:
        fed.append(inputs.shape[1])
        return plain(self, inputs, cache=cache, **rest)

    monkeypatch.setattr(type(tiny.model), "__call__", counting)
    scorer.score(IDS[:105], 5)
    assert fed == [5]


def test_reset_forgets(tiny: LanguageModel) -> None:
    scorer = tiny.scorer()
    scorer.score(IDS[:10], 1)
    scorer.reset()
    assert scorer.cached == 0


def test_a_failure_on_the_way_leaves_no_half_filled_cache(tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = tiny.scorer()
    scorer.score(IDS[:20], 1)
    layer = type(tiny.model.layers[0])
    plain, calls = layer.__call__, []

    def failing(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:  # the first layer holds the ids already
            raise KeyboardInterrupt
        return plain(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(layer, "__call__", failing)
        with pytest.raises(KeyboardInterrupt):
            scorer.score(IDS[:24], 4)
    assert scorer.cached == 0
    np.testing.assert_allclose(scorer.score(IDS[:24], 4), fresh(tiny, IDS[:24])[-4:], atol=1e-4)


def test_padding_rows_are_masked_and_their_ids_refused(tmp_path: Path) -> None:
    padded = load_mlx_model(str(write_tiny_model(tmp_path, padding=12)))
    real = padded.tokenizer.vocab_size
    rows = padded.scorer().score(IDS[:10], 3)
    assert rows.shape == (3, real + 12) == (3, padded.vocab_size)
    assert np.isneginf(rows[:, real:]).all() and np.isfinite(rows[:, :real]).all()
    with pytest.raises(PromptError, match=f"{real} is outside"):
        padded.scorer().score([5, real], 1)


def test_a_sliding_window_is_refused_at_load(tmp_path: Path) -> None:
    write_tiny_model(tmp_path, sliding_window=16, layer_types=["full_attention", "sliding_attention"])
    with pytest.raises(UnsupportedModelError, match="RotatingKVCache"):
        load_mlx_model(str(tmp_path))


def test_every_cache_that_is_let_through_forgets_what_it_gives_back() -> None:
    import mlx.core as mx
    from mlx_lm.models import cache as kinds

    def block(n: int, seed: int) -> Any:
        return mx.random.normal((1, 1, n, 64), key=mx.random.key(seed))

    allowed: list[Any] = [kinds.KVCache(), kinds.QuantizedKVCache()]
    check_rewindable([*allowed, kinds.CacheList(kinds.KVCache(), kinds.KVCache())], "model")
    for entry in allowed:
        entry.update_and_fetch(block(5, 1), block(5, 2))
        assert entry.trim(3) == 3
        again = entry.update_and_fetch(block(2, 3), block(2, 4))[0]
        assert (again[0] if isinstance(again, tuple | list) else again).shape[2] == 4


@pytest.mark.parametrize("kind", ["RotatingKVCache", "ArraysCache", "ChunkedKVCache", "ConcatenateKVCache"])
def test_a_cache_that_cannot_be_rewound_is_named(kind: str) -> None:
    from mlx_lm.models import cache as kinds

    make = {"RotatingKVCache": (8,), "ArraysCache": (2,), "ChunkedKVCache": (8,)}
    entry = getattr(kinds, kind)(*make.get(kind, ()))
    for caches in ([entry], [kinds.CacheList(kinds.KVCache(), entry)]):
        with pytest.raises(UnsupportedModelError, match=kind):
            check_rewindable(caches, "some-model")
