"""The folder of a draft: its files, its model card, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.core.acceptance import AcceptanceFigure
from specviz.core.errors import SettingsError, UnsupportedModelError
from specviz.core.provenance import versions
from specviz.core.vocabulary import Vocabulary
from specviz.distill import student as students
from specviz.distill.arrays import flat
from specviz.distill.card import Training, describe
from specviz.distill.folder import finish
from specviz.engines.distilled import Description, DraftVocabulary
from specviz.setup.loading import Loading, load_draft

TARGET = Vocabulary("byte-level BPE", tuple(f"t{i}" for i in range(100)), 1)
CONFIG = students.config_of(None, (), 40, 512)
TRAINING = Training(
    command="python -m specviz distill --target smollm2-135m --out FOLDER",
    seed=3,
    layers=(0, 1),
    texts=10,
    tokens=1234,
    tokens_seen=5000,
    coverage=0.91,
    minutes=12.5,
    machine="a test",
    date="2026-11-28",
    data="Prompts of this test.",
    recipe="Luck.",
    versions=versions(),
)
FIGURES = [AcceptanceFigure("chat", 0.0, 0.5, 1.25, 100, 2), AcceptanceFigure("all", 0.0, 0.5, None, 100, 2)]


def vocabulary() -> DraftVocabulary:
    tokens = np.arange(0, 80, 2, dtype=np.int32)
    inputs = np.zeros(100, dtype=np.int32)
    inputs[tokens] = np.arange(40)
    return DraftVocabulary(tokens, inputs)


def numpy_weights() -> dict[str, Any]:
    return {name: np.array(w) for name, w in flat(students.make(CONFIG).parameters()).items()}


def description(target: str = "smollm2-135m") -> Description:
    return describe(target, TARGET, TRAINING, FIGURES)


@pytest.mark.parametrize("bits", students.BITS)
def test_weights_of_numpy_become_a_draft_that_loads_and_gives_the_same_rows(tmp_path: Path, bits: int) -> None:
    weights = numpy_weights()
    folder = finish(tmp_path / "draft", CONFIG, weights, vocabulary(), description(), bits=bits)
    assert sorted(p.name for p in folder.iterdir()) == [
        "README.md",
        "config.json",
        "draft.json",
        "model.safetensors",
        "vocabulary.safetensors",
    ]
    draft = load_draft(str(folder), how=Loading("mlx"))
    draft.check_target(TARGET)
    ours = students.StudentScorer(students.rounded(CONFIG, weights, bits), vocabulary()).score([1, 2, 3, 60], 4)
    np.testing.assert_allclose(draft.scorer().score([1, 2, 3, 60], 4), ours, atol=0.05)
    assert ("quantization" in json.loads((folder / "config.json").read_text())) == (bits < 16)


def test_fewer_bits_are_fewer_bytes(tmp_path: Path) -> None:
    sizes = [
        (finish(tmp_path / str(bits), CONFIG, numpy_weights(), vocabulary(), description(), bits=bits))
        .joinpath("model.safetensors")
        .stat()
        .st_size
        for bits in students.BITS
    ]
    assert sizes == sorted(set(sizes))


def test_a_second_finish_replaces_the_first(tmp_path: Path) -> None:
    finish(tmp_path, CONFIG, numpy_weights(), vocabulary(), description("other"), bits=4)
    finish(tmp_path, CONFIG, numpy_weights(), vocabulary(), description(), bits=8)
    assert load_draft(str(tmp_path)).description.target == "smollm2-135m"


def test_parts_that_do_not_fit_leave_the_folder_as_it_was(tmp_path: Path) -> None:
    finish(tmp_path, CONFIG, numpy_weights(), vocabulary(), description())
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    short = DraftVocabulary(np.array([0], np.int32), np.zeros(100, np.int32))
    with pytest.raises(UnsupportedModelError, match="vocab_size"):
        finish(tmp_path, CONFIG, numpy_weights(), short, description())
    with pytest.raises(ValueError, match="embed_tokens"):
        finish(tmp_path, CONFIG | {"vocab_size": 41}, numpy_weights(), vocabulary(), description())
    with pytest.raises(SettingsError, match="not 7"):
        finish(tmp_path, CONFIG, numpy_weights(), vocabulary(), description(), bits=7)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_the_card_says_how_the_draft_was_made_and_what_was_measured(tmp_path: Path) -> None:
    card = finish(tmp_path, CONFIG, numpy_weights(), vocabulary(), description()).joinpath("README.md").read_text()
    for words in (
        "license: apache-2.0",
        "SmolLM2 by Hugging Face",
        "| chat | 0.500 | 1.25 | 100 |",
        "| **all** | 0.500 | n/a | 100 |",
        "layers 0, 1 of the target",
        "40 of the target's 100 tokens",
        TRAINING.command,
        "Seed 3. 12.5 minutes on a test",
        "6 bits",
        "arXiv:2310.08461",
    ):
        assert words in card
    written = json.loads((tmp_path / "draft.json").read_text())
    assert (
        written["format"] == 1
        and written["training"]["tokens_seen"] == 5000
        and written["acceptance"][0]["domain"] == "chat"
    )


def test_the_licence_of_another_target_is_its_own(tmp_path: Path) -> None:
    folder = finish(tmp_path, CONFIG, numpy_weights(), vocabulary(), description("llama-3.2-1b"))
    card = (folder / "README.md").read_text()
    assert "license: other" in card and "derived from the target llama-3.2-1b" in card and "Hugging Face" not in card
