"""A distilled draft as a model: it takes the target's ids and gives rows over its own tokens."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.core.errors import PairingError, UnsupportedModelError
from specviz.core.sampling import Logits
from specviz.core.wait import Progress, Wait
from specviz.engines.distilled_model import DistilledModel
from specviz.engines.mlx.scorer import MlxScorer
from specviz.engines.toy import ToyTokenizer
from specviz.setup import loading
from tests.engines.tiny_distilled import write_tiny_distilled

TOY = ToyTokenizer()
KEPT = list(range(0, TOY.vocab_size, 3))
CONTEXT = [int(i) for i in np.random.default_rng(0).integers(0, TOY.vocab_size, 40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_distilled(tmp_path_factory.mktemp("distilled"), TOY.vocabulary, KEPT, name="toy")


@pytest.fixture(scope="module")
def draft(folder: Path) -> DistilledModel:
    return loading.load_draft(str(folder), how=loading.Loading("mlx"))


def scorer_of(draft: DistilledModel) -> MlxScorer:
    scorer = draft.scorer()
    assert isinstance(scorer, MlxScorer)
    return scorer


def one_pass(model: Any, ids: list[int]) -> Logits:
    """The reference: ids converted to the draft's ids here, without a cache."""
    import mlx.core as mx

    own = [max(i for i, token in enumerate(KEPT) if token <= target_id) for target_id in ids]
    return np.array(model(mx.array([own]))[0], dtype=np.float32)


def test_rows_are_over_its_own_tokens_after_the_targets_ids(draft: DistilledModel) -> None:
    rows = draft.scorer().score(CONTEXT, 7)
    assert rows.shape == (7, len(KEPT)) and rows.dtype == np.float32 and np.isfinite(rows).all()
    np.testing.assert_allclose(rows, one_pass(scorer_of(draft)._model, CONTEXT)[-7:], atol=1e-4)


def test_the_cache_follows_the_targets_ids(draft: DistilledModel, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = scorer_of(draft)
    scorer.score(CONTEXT, 1)
    fed: list[int] = []
    plain = type(scorer._model).__call__

    def counting(self: Any, inputs: Any, cache: Any = None, **rest: Any) -> Any:
        fed.append(inputs.shape[1])
        return plain(self, inputs, cache=cache, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(type(scorer._model), "__call__", counting)
        # The draft reads both 1 and 2 as 0, but the texts differ, so the cache must not keep the token.
        scorer.score([*CONTEXT, 1, 5], 1)
        rewound = scorer.score([*CONTEXT, 2, 5], 1)
    assert fed == [2, 2] and scorer.cached == len(CONTEXT) + 2
    np.testing.assert_allclose(rewound, one_pass(scorer_of(draft)._model, [*CONTEXT, 2, 5])[-1:], atol=1e-4)
    np.testing.assert_allclose(
        scorer.score(CONTEXT[:30], 4), one_pass(scorer_of(draft)._model, CONTEXT[:30])[-4:], atol=1e-4
    )


def test_what_is_known_about_it(folder: Path) -> None:
    seen: list[Progress] = []
    draft = loading.load_draft(str(folder), Wait(seen.append), loading.Loading("mlx"))
    assert (draft.max_context, draft.precision, draft.description.target) == (2048, "float32", "toy")
    assert [(p.done, p.total) for p in seen] == [(0, 1), (1, 1)]


def test_another_target_is_refused(draft: DistilledModel) -> None:
    draft.check_target(TOY.vocabulary)
    with pytest.raises(PairingError, match="distilled for toy"):
        draft.check_target(type(TOY.vocabulary)("toy", TOY.vocabulary.pieces[:-1]))


def test_quantised_weights_are_read(folder: Path, tmp_path: Path) -> None:
    import mlx.core as mx
    from mlx.nn.layers.quantized import quantize
    from mlx.utils import tree_flatten
    from mlx_lm.utils import load_model

    quantised = Path(shutil.copytree(folder, tmp_path / "draft"))
    model, config = load_model(folder)
    quantize(model, group_size=32, bits=8)
    mx.save_safetensors(str(quantised / "model.safetensors"), dict(tree_flatten(model.parameters())))
    (quantised / "config.json").write_text(json.dumps(config | {"quantization": {"group_size": 32, "bits": 8}}))
    rows = loading.load_draft(str(quantised), how=loading.Loading("mlx")).scorer().score(CONTEXT, 3)
    np.testing.assert_allclose(rows, one_pass(model, CONTEXT)[-3:], atol=0.02)


@pytest.mark.parametrize("change", [{"num_hidden_layers": 3}, {"hidden_size": 64}])
def test_weights_that_are_not_those_of_the_config(folder: Path, tmp_path: Path, change: dict[str, int]) -> None:
    bad = Path(shutil.copytree(folder, tmp_path / "draft"))
    config = json.loads((bad / "config.json").read_text())
    (bad / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(UnsupportedModelError, match="cannot be loaded"):
        loading.load_draft(str(bad), how=loading.Loading("mlx"))


def test_a_context_that_is_no_number(folder: Path, tmp_path: Path) -> None:
    bad = Path(shutil.copytree(folder, tmp_path / "draft"))
    config = json.loads((bad / "config.json").read_text())
    (bad / "config.json").write_text(json.dumps(config | {"max_position_embeddings": "many"}))
    with pytest.raises(UnsupportedModelError, match="must be a number of tokens, not 'many'"):
        loading.load_draft(str(bad), how=loading.Loading("mlx"))


def test_damaged_weights(folder: Path, tmp_path: Path) -> None:
    bad = Path(shutil.copytree(folder, tmp_path / "draft"))
    (bad / "model.safetensors").write_bytes((bad / "model.safetensors").read_bytes()[:999])
    with pytest.raises(UnsupportedModelError, match="cannot be loaded"):
        loading.load_draft(str(bad), how=loading.Loading("mlx"))


def test_it_is_no_language_model(folder: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="no tokenizer of its own") as caught:
        loading.load_model(str(folder))
    assert f"model:{folder}" in caught.value.remedy and "toy" in caught.value.remedy
