"""Training, and its continuation from a checkpoint."""

from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specviz.core.errors import RunError
from specviz.distill import student as students
from specviz.distill.arrays import flat
from specviz.distill.batches import Collator
from specviz.distill.samples import TeacherText
from specviz.distill.subject import open_subject
from specviz.distill.teacher import TextRequest
from specviz.distill.train import LAST_RATE, WARM_UP_STEPS, Trainer, TrainingPlan, rate
from specviz.distill.vocabulary import choose
from specviz.distill.vocabulary import count as count_ids


@pytest.fixture(scope="module")
def samples() -> list[TeacherText]:
    subject = open_subject("toy")
    ids = tuple(subject.prompt_ids(" the draft"))
    return [s for _, s in subject.teacher.write([TextRequest("toy", ids, 1.0, 30, i) for i in range(12)])]


def trainer(samples: list[TeacherText], steps: int | None = 12, seconds: float = 1e9, **options: Any) -> Trainer:
    vocabulary = choose(count_ids((s.token_ids for s in samples), 294), 64, [])
    student = students.make(students.config_of(None, (), len(vocabulary.tokens), 512))
    plan = TrainingPlan(seconds=seconds, steps=steps, batch_tokens=128, learning_rate=3e-3)
    return Trainer(student, samples, Collator(vocabulary), plan, **options)


def weights(one: Trainer) -> dict[str, np.ndarray]:
    return {name: np.array(w) for name, w in flat(one.student.parameters()).items()}


def test_the_loss_falls(samples: list[TeacherText]) -> None:
    losses = list(trainer(samples, steps=60).run())
    assert len(losses) == 60 and np.mean(losses[:5]) > 1.5 * np.mean(losses[15:20])


@pytest.mark.parametrize("killed_at", [1, 3, 7, 11])
def test_a_continued_run_ends_as_an_undisturbed_one(samples: list[TeacherText], tmp_path: Path, killed_at: int) -> None:
    whole = trainer(samples)
    losses = list(whole.run())
    first = trainer(samples)
    list(islice(first.run(), killed_at))
    first.save(tmp_path / "checkpoint.safetensors")
    list(islice(first.run(), 1))  # lost: it was killed before the next checkpoint
    second = trainer(samples)
    second.load(tmp_path / "checkpoint.safetensors")
    assert second.step == killed_at
    assert list(second.run()) == pytest.approx(losses[killed_at:], rel=1e-5)
    assert (second.step, second.tokens) == (whole.step, whole.tokens)
    for name, w in weights(whole).items():
        np.testing.assert_allclose(weights(second)[name], w, atol=1e-6)


def test_a_budget_of_time_counts_the_time_of_earlier_sessions(samples: list[TeacherText], tmp_path: Path) -> None:
    def clock() -> Any:
        ticks = count()
        return lambda: float(next(ticks))

    whole = trainer(samples, steps=None, seconds=10, clock=clock())
    assert len(list(whole.run())) == 10
    first = trainer(samples, steps=None, seconds=10, clock=clock())
    list(islice(first.run(), 4))
    first.save(tmp_path / "c.safetensors")
    second = trainer(samples, steps=None, seconds=10, clock=clock())
    second.load(tmp_path / "c.safetensors")
    spent = second.spent_s
    assert 3 <= spent <= 4 and len(list(second.run())) == 10 - spent


def test_a_damaged_checkpoint_is_refused_with_the_remedy(samples: list[TeacherText], tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    one = trainer(samples)
    one.save(path)
    for contents in (b"", path.read_bytes()[:1000], b"x" * 200):
        path.write_bytes(contents)
        with pytest.raises(RunError, match="Delete it"):
            trainer(samples).load(path)


def test_training_without_texts_is_an_error(samples: list[TeacherText]) -> None:
    one = trainer(samples)
    with pytest.raises(RunError, match="no text"):
        Trainer(one.student, [], Collator(choose(np.ones(294, np.int64), 64, [])), TrainingPlan(1.0))


def test_the_rate_warms_up_and_falls() -> None:
    assert rate(0, 0.0, 1.0) == pytest.approx(1 / WARM_UP_STEPS)
    assert rate(0, 0.04, 1.0) == pytest.approx(0.8, abs=0.01)
    assert rate(WARM_UP_STEPS, 0.0, 1.0) == pytest.approx(1.0)
    assert rate(10_000, 0.5, 1.0) == pytest.approx((1 + LAST_RATE) / 2)
    assert rate(10_000, 1.0, 1.0) == pytest.approx(LAST_RATE)
