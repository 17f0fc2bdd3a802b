from pathlib import Path

import numpy as np
import pytest

from specviz.core.errors import SettingsError
from specviz.distill import student as students
from specviz.distill.arrays import flat
from specviz.engines.distilled import DraftVocabulary
from specviz.engines.mlx.language_model import LanguageModel
from specviz.setup.loading import load_mlx_model
from tests.engines.tiny import write_tiny_model


def whole(model: LanguageModel) -> DraftVocabulary:
    ids = np.arange(model.tokenizer.vocab_size, dtype=np.int32)
    return DraftVocabulary(ids, ids)


def cut(model: LanguageModel, layers: tuple[int, ...], vocabulary: DraftVocabulary) -> students.StudentScorer:
    config = students.config_of(model, layers, len(vocabulary.tokens), model.max_context)
    student = students.make(config, students.initial_weights(model, layers, vocabulary))
    return students.StudentScorer(student, vocabulary)


@pytest.mark.parametrize("tied", [True, False])
def test_a_student_of_all_layers_and_all_tokens_is_the_target(tmp_path: Path, tied: bool) -> None:
    model = load_mlx_model(
        str(write_tiny_model(tmp_path, tie_word_embeddings=tied, rope_traditional=True, rope_theta=5000.0))
    )
    ids = [5, 9, 30, 2, 77]
    theirs = model.scorer().score(ids, 5)
    np.testing.assert_allclose(cut(model, (0, 1), whole(model)).score(ids, 5), theirs, atol=1e-3)
    assert not np.allclose(cut(model, (1,), whole(model)).score(ids, 5), theirs, atol=1e-1)


def test_a_student_of_some_tokens_has_their_rows_and_reads_the_others_by_the_map(tiny: LanguageModel) -> None:
    tokens = np.array([3, 8, 50], dtype=np.int32)
    inputs = np.full(tiny.tokenizer.vocab_size, 1, dtype=np.int32)
    inputs[tokens] = [0, 1, 2]
    some = cut(tiny, (0, 1, 2), DraftVocabulary(tokens, inputs))
    full = tiny.scorer().score([50, 8, 8], 3)
    np.testing.assert_allclose(some.score([50, 200, 8], 3), full[:, tokens], atol=1e-3)


def test_a_quantised_target_gives_its_weights_as_it_computes_with_them(tmp_path: Path) -> None:
    from mlx.nn.layers.quantized import quantize

    model = load_mlx_model(str(write_tiny_model(tmp_path, hidden_size=64)))
    expected = {name: w for name, w in students.initial_weights(model, (1,), whole(model)).items()}
    quantize(model.model, group_size=32, bits=8)
    found = students.initial_weights(model, (1,), whole(model))
    assert expected.keys() == found.keys()
    for name, w in expected.items():
        np.testing.assert_allclose(np.array(found[name]), np.array(w), atol=0.02)


def test_the_seed_decides_new_weights() -> None:
    config = students.config_of(None, (), 40, 128)
    one, same, other = (flat(students.make(config, seed=s).parameters()) for s in (1, 1, 2))
    name = "model.layers.0.mlp.up_proj.weight"
    np.testing.assert_array_equal(np.array(one[name]), np.array(same[name]))
    assert not np.allclose(np.array(one[name]), np.array(other[name]))


def test_the_first_layers_and_the_last_are_the_default() -> None:
    assert students.default_layers(30) == (0, 1, 2, 29)
    assert students.default_layers(3) == (0, 1, 2)


@pytest.mark.parametrize("layers", [(), (0, 30), (-1, 2), (2, 1), (1, 1)])
def test_layers_that_do_not_exist_are_refused(layers: tuple[int, ...]) -> None:
    with pytest.raises(SettingsError, match="from 0 to 29"):
        students.check_layers(layers, 30)


@pytest.mark.parametrize("bits", students.BITS)
def test_rounded_weights_are_near_the_trained_ones(bits: int) -> None:
    config = students.config_of(None, (), 40, 128)
    weights = flat(students.make(config).parameters())
    rounded = flat(students.rounded(config, weights, bits).parameters())
    worst = max(float(np.abs(np.array(rounded[n]) - np.array(w)).max()) for n, w in weights.items())
    assert worst < 0.7 / 2 ** (bits - 3)
