from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.core.errors import PairingError, UnsupportedModelError
from specviz.core.vocabulary import Vocabulary
from specviz.engines import distilled
from specviz.engines.distilled import Description, DraftVocabulary
from tests.engines.tiny_distilled import draft_vocabulary, write_tiny_distilled

TARGET = Vocabulary("byte-level BPE", tuple(f"piece {i}" for i in range(40)), bos_id=1)
KEPT = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_distilled(tmp_path_factory.mktemp("distilled"), TARGET, KEPT)


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy that a test can damage."""
    return Path(shutil.copytree(made, tmp_path / "draft"))


def int32(*values: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(values, dtype=np.int32)


def change_json(file: str, **changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        found = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(found | changes))

    return change


def arrays(**lists: np.ndarray[Any, Any]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        from safetensors.numpy import save_file

        save_file(lists, folder / "vocabulary.safetensors")

    return change


def text(file: str, data: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / file).write_bytes(data)

    return change


def test_what_is_written_is_read_back(folder: Path) -> None:
    assert distilled.is_distilled(folder) and not distilled.is_distilled(folder.parent)
    description, vocabulary = distilled.check_folder(folder)
    assert description == Description.of("tiny", TARGET)
    assert vocabulary.tokens.tolist() == KEPT
    assert vocabulary.inputs[[0, 2, 4, 5, 6, 39]].tolist() == [0, 0, 1, 2, 2, 11]


def test_further_keys_of_the_description_are_kept(tmp_path: Path) -> None:
    given = Description.of("tiny", TARGET, tokens_seen=12_000, layers=[0, 29])
    distilled.write_description(tmp_path, given)
    assert distilled.read_description(tmp_path) == given
    assert json.loads((tmp_path / "draft.json").read_text())["format"] == 1


def test_a_view_with_strides_is_written_as_its_values(tmp_path: Path) -> None:
    wide = np.stack([int32(2, 5, 9), int32(0, 0, 0)], axis=1)
    distilled.save_vocabulary(tmp_path, DraftVocabulary(wide[:, 0], draft_vocabulary(12, [2, 5, 9]).inputs))
    assert distilled.read_vocabulary(tmp_path).tokens.tolist() == [2, 5, 9]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "vocabulary.safetensors").unlink(), "vocabulary.safetensors cannot be read"),
        (text("vocabulary.safetensors", b"\x08" + b"\0" * 20), "vocabulary.safetensors cannot be read"),
        (arrays(tokens=int32(0, 1)), "lacks `inputs`"),
        (arrays(other=int32(0, 1)), "lacks `tokens` and `inputs`"),
        (arrays(tokens=np.array([0, 1]), inputs=int32(0, 1)), "`tokens` must be .* int32, and is int64"),
        (arrays(tokens=int32(), inputs=int32(0, 1)), "non-empty"),
        (arrays(tokens=int32(0, 1), inputs=np.zeros((2, 1), np.int32)), r"`inputs` .* shape \(2, 1\)"),
        (arrays(tokens=int32(0, 2), inputs=int32(0, 1)), "from 0 to 1, and one is 2"),
        (arrays(tokens=int32(-1, 1), inputs=int32(0, 1)), "from 0 to 1, and one is -1"),
        (arrays(tokens=int32(0, 1), inputs=int32(0, 2)), "each of `inputs` .* one is 2"),
        (arrays(tokens=int32(1, 0), inputs=int32(1, 0)), "ascend strictly, and has 1 before 0 at index 0"),
        (arrays(tokens=int32(1, 1), inputs=int32(0, 1)), "ascend strictly"),
        (arrays(tokens=int32(0, 2), inputs=int32(0, 1, 0)), "draft id 0 for target id 2, which is draft id 1"),
        (lambda f: (f / "draft.json").unlink(), "draft.json cannot be read"),
        (text("draft.json", b"{"), "draft.json cannot be read"),
        (text("draft.json", b"\xff\xff"), "draft.json is text in another encoding than UTF-8, not JSON"),
        (text("draft.json", b"version https://git-lfs.github.com/spec/v1\noid"), "draft.json is a Git LFS pointer"),
        (text("draft.json", b"[" * 100_000), "draft.json cannot be read"),
        (text("draft.json", b"[1]"), "must hold a JSON object, not list"),
        (change_json("draft.json", format=2), "is of format 2, and this version of specviz reads format 1"),
        (change_json("draft.json", format=None), "is of format None"),
        (change_json("draft.json", format=True), "is of format True"),
        (change_json("draft.json", target=7), "`target` .* must be a name, not 7"),
        (change_json("draft.json", target_tokens="40"), "`target_tokens` .* whole number above 0, not 40"),
        (change_json("draft.json", target_tokens=41), "`target_tokens` .* is 41, .* inputs for 40"),
        (change_json("draft.json", target_vocabulary_sha256="xy"), "64 hexadecimal digits, not xy"),
        (lambda f: (f / "config.json").unlink(), "config.json cannot be read"),
        (text("config.json", b"[]"), "must hold a JSON object, not list"),
        (change_json("config.json", vocab_size=13), "`vocab_size` .* is 13, .* has 12 tokens"),
        (change_json("config.json", model_type="mamba"), "must be 'llama', .* it is mamba"),
    ],
)
def test_each_damage_is_named(folder: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(folder)
    with pytest.raises(UnsupportedModelError, match=message) as caught:
        distilled.check_folder(folder)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Vocabulary(TARGET.kind, TARGET.pieces[:-1], 1), "has 40 tokens; this target has 39"),
        (Vocabulary(TARGET.kind, (*TARGET.pieces[:-1], "other"), 1), "fingerprint"),
        (Vocabulary("SentencePiece", TARGET.pieces, 1), "fingerprint"),
        (Vocabulary(TARGET.kind, TARGET.pieces, None), "fingerprint"),
    ],
)
def test_another_target_is_refused(target: Vocabulary, message: str) -> None:
    description = Description.of("tiny", TARGET)
    distilled.check_target("model:here", description, TARGET)
    with pytest.raises(PairingError, match=message) as caught:
        distilled.check_target("model:here", description, target)
    assert "model:here" in caught.value.message and "tiny" in caught.value.remedy
