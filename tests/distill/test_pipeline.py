"""Whole runs, most of them on the toy."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.cli.acceptance import measure
from specviz.core.acceptance import overall
from specviz.core.errors import PromptError, RunError, SettingsError
from specviz.distill.pipeline import distill
from specviz.distill.recipe import Recipe
from specviz.distill.workplace import occupied
from specviz.distill.writing import Learned, News, Wrote
from specviz.setup.loading import load_draft
from tests.distill.kill import RECIPE
from tests.engines.tiny import write_tiny_model
from tests.sample import sample

ROOT = Path(__file__).parent.parent.parent
SMALL = replace(RECIPE, tokens=3000, steps=4, bits=6)


def weights(folder: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "draft"
    outcome = distill(RECIPE, folder, checkpoint_s=0.0)
    assert outcome is not None and outcome.complete and not (folder / ".work").exists()
    return folder


#: Function, its call, texts written and steps made by then (None: all texts).
KILLS = [
    ("specviz.distill.writing.save_shard", 1, 0, 0),  # before the held-out texts are kept
    ("os.fsync", 2, 0, 0),  # while they are being kept
    ("specviz.distill.workplace:Workplace.save_texts", 3, 96, 0),
    ("os.replace", 3, 0, 0),  # a shard is written, but not yet renamed
    ("specviz.distill.workplace.save_vocabulary", 1, None, 0),
    ("specviz.distill.workplace:Workplace.vocabulary", 3, None, 0),
    ("specviz.distill.train:Trainer.save", 7, None, 6),
    ("specviz.distill.train.save", 5, None, 4),
    ("specviz.distill.pipeline.score_texts", 1, None, 12),
    ("specviz.distill.folder.check_folder", 1, None, 12),
    ("specviz.distill.workplace:Workplace.remove", 1, None, 12),
]


@pytest.mark.parametrize(("function", "n", "texts", "steps"), sample(KILLS, 6))
def test_a_run_killed_anywhere_ends_as_an_undisturbed_one(
    whole: Path, tmp_path: Path, function: str, n: int, texts: int | None, steps: int
) -> None:
    """The next run begins with `texts` texts (None: all of them) and `steps` steps."""
    folder = tmp_path / "draft"
    script = [sys.executable, "-m", "tests.distill.kill", str(folder)]
    killed = subprocess.run([*script, function, str(n)], cwd=ROOT, timeout=120, capture_output=True)
    assert killed.returncode == -9, killed.stderr.decode()
    news: list[News] = []
    outcome = distill(RECIPE, folder, news.append, checkpoint_s=0.0)
    assert outcome is not None and outcome.complete
    wrote = [item.texts for item in news if isinstance(item, Wrote)]
    assert wrote[:1] == ([] if texts is None else [texts + 1])
    assert next(item.step for item in news if isinstance(item, Learned)) == steps
    found = weights(folder)
    for name, w in weights(whole).items():
        np.testing.assert_allclose(found[name], w, atol=2e-3)
    ours, theirs = (json.loads((f / "draft.json").read_text()) for f in (folder, whole))
    assert ours["training"]["tokens_seen"] == theirs["training"]["tokens_seen"]
    assert ours["training"]["tokens"] == theirs["training"]["tokens"]
    assert not (folder / ".work").exists() and not (folder / ".partial").exists()


def test_acceptance_of_the_toy_rises_clearly(tmp_path: Path) -> None:
    news: list[News] = []
    recipe = Recipe(target="toy", tokens=40_000, steps=160, batch_tokens=1024)
    outcome = distill(recipe, tmp_path / "draft", news.append, checkpoint_s=5.0)
    assert outcome is not None and outcome.complete
    assert outcome.before[0.0] < 0.1 and outcome.before[0.8] < 0.25
    assert outcome.after[0.0] > 0.4 and outcome.after[0.8] > outcome.before[0.8] + 0.1
    wrote, learned = ([n for n in news if isinstance(n, kind)] for kind in (Wrote, Learned))
    assert wrote[-1].tokens >= 40_000 and wrote[-1].tokens_per_s > 0
    losses = [n.loss for n in learned if n.loss is not None]
    assert losses[-1] < losses[0] and learned[-1].left_s < 60
    assert any(n.acceptance for n in learned[1:])
    # `specviz acceptance` measures the same on other texts.
    found = overall(measure(f"model:{tmp_path / 'draft'}", "toy"))
    assert found[0.0] == pytest.approx(outcome.after[0.0], abs=0.1)
    assert found[0.8] == pytest.approx(outcome.after[0.8], abs=0.1)


class StopAt:
    """Cancels after the first n reports of a kind."""

    def __init__(self, kind: type, n: int = 1) -> None:
        self.kind, self.left = kind, n

    def __call__(self, news: News) -> None:
        self.left -= isinstance(news, self.kind)

    def asked(self) -> bool:
        return self.left <= 0


@pytest.mark.parametrize(("kind", "n"), [(Wrote, 1), (Wrote, 70), (Learned, 2), (Learned, 4)])
def test_a_stopped_run_leaves_a_draft_and_can_be_continued(tmp_path: Path, kind: type, n: int) -> None:
    folder, stop = tmp_path / "draft", StopAt(kind, n)
    outcome = distill(SMALL, folder, stop, stop.asked, checkpoint_s=0.0)
    assert outcome is not None and not outcome.complete
    assert load_draft(str(folder)).description.target == "toy"
    assert "stopped before its time" in (folder / "README.md").read_text()
    outcome = distill(SMALL, folder)
    assert outcome is not None and outcome.complete
    description = json.loads((folder / "draft.json").read_text())["training"]
    assert description["complete"] and description["tokens"] >= 3000
    assert "stopped before its time" not in (folder / "README.md").read_text()


def test_a_run_stopped_before_the_first_text_leaves_no_draft(tmp_path: Path) -> None:
    assert distill(SMALL, tmp_path / "draft", cancelled=lambda: True) is None
    assert [p.name for p in (tmp_path / "draft").iterdir()] == [".work"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "--seed is 1 now, and was 0 there"),
        ({"bits": 4}, "--bits is 4 now"),
        ({"layers": (0, 1)}, "--layers is 0,1 now, and was not given there"),
        ({"steps": None}, "--steps is not given now, and was 4"),
    ],
)
def test_other_settings_than_those_of_the_unfinished_run_are_refused(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    stop = StopAt(Wrote)
    distill(SMALL, tmp_path, stop, stop.asked)
    with pytest.raises(SettingsError, match=words) as error:
        distill(replace(SMALL, **change), tmp_path)
    assert "another --out" in error.value.remedy
    distill(replace(SMALL, minutes=90), tmp_path)  # only the time may differ


def test_a_folder_with_other_files_is_refused(tmp_path: Path, whole: Path) -> None:
    (tmp_path / "thesis.txt").write_text("important")
    with pytest.raises(SettingsError, match="other files"):
        distill(SMALL, tmp_path)
    with pytest.raises(SettingsError, match="is a file"):
        distill(SMALL, tmp_path / "thesis.txt")
    with pytest.raises(SettingsError, match="finished draft"):
        distill(SMALL, whole)
    assert (tmp_path / "thesis.txt").read_text() == "important"


def test_a_second_process_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with occupied(tmp_path), pytest.raises(RunError, match="is being written by specviz distill, process"):
        distill(SMALL, tmp_path)


def test_a_folder_that_cannot_be_made_is_an_error_with_a_remedy() -> None:
    with pytest.raises(RunError, match="cannot be written") as error:
        distill(SMALL, Path("/proc/nowhere/draft"))
    assert "same command" in error.value.remedy


def test_a_run_that_another_version_has_left_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".work").mkdir()
    (tmp_path / ".work" / "recipe.json").write_text('{"goal": "toy", "minutes": 60}')
    with pytest.raises(RunError, match="unfinished run in .* cannot be continued") as error:
        distill(SMALL, tmp_path)
    assert "to start again" in error.value.remedy


def test_a_missing_library_is_named_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specviz.distill.pipeline.find_spec", lambda name: None if name == "mlx_lm" else name)
    with pytest.raises(RunError, match="needs mlx-lm, which") as error:
        distill(SMALL, tmp_path / "draft")
    assert "requirements-distill.txt" in error.value.remedy and not (tmp_path / "draft").exists()


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    stop = StopAt(Wrote, 50)
    distill(SMALL, tmp_path, stop, stop.asked)
    shard = next((tmp_path / ".work" / "texts").iterdir())
    shard.write_bytes(shard.read_bytes()[:500])
    with pytest.raises(RunError, match=shard.name):
        distill(SMALL, tmp_path)


def test_a_student_of_a_llama_with_prompts_of_a_file(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny", hidden_size=64, num_hidden_layers=3)
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "the sky"}\n{"prompt": "red light", "domain": "colour"}\n')
    recipe = Recipe(
        target=f"local:{model}",
        prompts=str(prompts),
        layers=(0, 2),
        vocab=100,
        tokens=200,
        steps=3,
        max_tokens=8,
        minutes=1,
    )
    outcome = distill(recipe, tmp_path / "draft")
    assert outcome is not None and {f.domain for f in outcome.figures} >= {"chat", "fix", "all"}
    description = json.loads((tmp_path / "draft" / "draft.json").read_text())
    assert description["training"]["layers"] == [0, 2] and description["target_tokens"] == 300
    config = json.loads((tmp_path / "draft" / "config.json").read_text())
    assert config["num_hidden_layers"] == 2 and config["vocab_size"] <= 100 and config["hidden_size"] == 64
    found = measure(f"model:{tmp_path / 'draft'}", str(model), max_tokens=8, per_domain=1, temperatures=[0.8])
    assert 0 < overall(found)[0.8] < 1 and len(found) == 11


def test_layers_that_the_target_does_not_have_are_refused_and_can_be_corrected(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path / "tiny", hidden_size=64)
    recipe = Recipe(target=f"local:{model}", layers=(0, 2), tokens=100, steps=1, max_tokens=4)
    with pytest.raises(SettingsError, match="from 0 to 1"):
        distill(recipe, tmp_path / "draft")
    stop = StopAt(Wrote)
    distill(replace(recipe, layers=(0, 1)), tmp_path / "draft", stop, stop.asked)


def test_a_prompt_that_leaves_no_room_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("fine\n" + "z" * 5000)
    with pytest.raises(PromptError, match="does not fit"):
        distill(replace(SMALL, prompts=str(tmp_path / "p.txt")), tmp_path / "draft")
