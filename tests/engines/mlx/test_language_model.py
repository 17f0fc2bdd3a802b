from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from specviz.core.errors import UnsupportedModelError
from specviz.core.wait import Progress, Wait
from specviz.engines.mlx import language_model
from specviz.engines.mlx.blas import use_fast_blas
from specviz.engines.mlx.language_model import LanguageModel
from specviz.setup.loading import load_mlx_model
from specviz.store import store


def test_what_is_known_about_a_model(tiny: LanguageModel, tiny_folder: Path) -> None:
    assert tiny.name == str(tiny_folder)
    assert tiny.max_context == 2048 and tiny.stop_ids == tiny.tokenizer.stop_ids
    assert tiny.blas == use_fast_blas().name
    assert tiny.vocab_size == tiny.tokenizer.vocab_size == 300
    # Embedding, and per layer q, o; k, v; the three of the MLP; two norms; and the last norm.
    assert tiny.parameters == 300 * 32 + 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32 + 2 * 32) + 32


def test_progress_of_a_load_reaches_its_total(tiny_folder: Path) -> None:
    seen: list[Progress] = []
    load_mlx_model(str(tiny_folder), Wait(seen.append))
    assert seen[0].done == 0 and seen[-1].done == seen[-1].total


def test_quantised_weights_become_float32_on_a_cpu_and_stay_on_a_gpu(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlx.core as mx
    from mlx.nn.layers.quantized import quantize
    from mlx.utils import tree_flatten
    from mlx_lm import utils

    folder = tmp_path / "quantised"
    shutil.copytree(tiny_folder, folder)
    model, config = utils.load_model(tiny_folder)
    quantize(model, group_size=32, bits=8)
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(model.parameters())))
    (folder / "config.json").write_text(json.dumps(config | {"quantization": {"group_size": 32, "bits": 8}}))

    monkeypatch.setattr(language_model, "_on_gpu", lambda: True)
    stored = load_mlx_model(str(folder))
    monkeypatch.setattr(language_model, "_on_gpu", lambda: False)
    plain = load_mlx_model(str(folder))

    assert (stored.precision, plain.precision) == ("as stored", "float32")
    assert {w.dtype for w in dict(tree_flatten(plain.model.parameters())).values()} == {mx.float32}
    assert mx.uint32 in {w.dtype for w in dict(tree_flatten(stored.model.parameters())).values()}
    assert stored.parameters == plain.parameters
    rows = [m.scorer().score([5, 6, 7], 3) for m in (stored, plain)]
    np.testing.assert_allclose(rows[0], rows[1], atol=0.05)


def test_weights_that_would_not_fit_the_memory_stay_quantised(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_model, "_memory_bytes", lambda: 1000)
    assert load_mlx_model(str(tiny_folder)).precision == "as stored"


@pytest.mark.parametrize(
    ("change", "message"),
    [({"model_type": "no_such_family"}, "no_such_family"), ({"num_hidden_layers": 3}, "cannot be loaded")],
)
def test_a_model_that_mlx_lm_cannot_load(
    tiny_folder: Path, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(tiny_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(UnsupportedModelError, match=message):
        load_mlx_model(str(folder))


def test_damaged_weights(tiny_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(tiny_folder, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(UnsupportedModelError, match="cannot be loaded"):
        load_mlx_model(str(folder))


@pytest.mark.smollm
def test_greedy_text_is_that_of_mlx_lm(smollm: LanguageModel) -> None:
    from mlx_lm import stream_generate

    tokenizer = smollm.tokenizer
    prompt = tokenizer.encode(tokenizer.chat("Explain why the sky is blue."))
    theirs = []
    from mlx_lm.utils import load_tokenizer

    hf = load_tokenizer(store.pull("smollm2-135m"))
    for piece in stream_generate(smollm.model, hf, prompt, max_tokens=64):
        theirs.append(piece.token)
    ours: list[int] = []
    scorer = smollm.scorer()
    while len(ours) < len(theirs):
        ours.append(int(scorer.score([*prompt, *ours], 1)[-1].argmax()))
    assert ours == theirs
    assert "sky" in tokenizer.decode(ours)


@pytest.mark.smollm
def test_a_block_scored_at_once_agrees_with_one_by_one(smollm: LanguageModel) -> None:
    ids = smollm.tokenizer.encode("The quick brown fox jumps over the lazy dog, and then it sleeps.")
    block = smollm.scorer().score(ids, 9)
    scorer = smollm.scorer()
    single = [scorer.score(ids[: len(ids) - 8 + i], 1)[-1] for i in range(9)]
    np.testing.assert_allclose(block, np.stack(single), atol=2e-3)
    assert (block.argmax(-1) == np.stack(single).argmax(-1)).all()
