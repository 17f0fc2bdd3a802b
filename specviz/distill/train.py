"""Training: AdamW with warm-up and cosine decay, for a given time or number of steps, with checkpoints."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.core.errors import RunError
from specviz.core.files import write_whole
from specviz.distill.arrays import flat, load, save
from specviz.distill.batches import Batch, Collator, plan
from specviz.distill.loss import mixed, tv_weight
from specviz.distill.samples import TeacherText

WARM_UP_STEPS = 50
WARM_UP = 0.05
#: The last learning rate, as a share of the highest.
LAST_RATE = 0.05
GRADIENT_NORM = 1.0


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How to train.

    Attributes:
        seconds: for the training; pauses between two sessions do not count.
        steps: if given, they decide when training ends, and a run is the same on every machine.
        batch_tokens: see `specviz.distill.batches.plan`.
        learning_rate: the highest one.
        seed: of the order of texts.
    """

    seconds: float
    steps: int | None = None
    batch_tokens: int = 1024
    learning_rate: float = 5e-4
    weight_decay: float = 0.01
    seed: int = 0

    def progress(self, step: int, spent_s: float) -> float:
        """The share of the training that is over, at most 1."""
        if self.steps is not None:
            return min(1.0, step / max(1, self.steps))
        return min(1.0, spent_s / self.seconds) if self.seconds > 0 else 1.0


def rate(step: int, progress: float, highest: float) -> float:
    """The learning rate: linear up to `highest`, then along half a cosine down to a share of it.

    The warm-up takes `WARM_UP_STEPS`, or a share of the training where that is less.
    """
    warm = min(1.0, max((step + 1) / WARM_UP_STEPS, progress / WARM_UP))
    return highest * warm * (LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * progress)))


class Trainer:
    """A student, its optimizer, and the state of the training.

    Attributes:
        student: is trained in place.
        step, tokens, spent_s: steps done, target tokens learned from and seconds used, over all sessions.
    """

    def __init__(
        self,
        student: Any,
        samples: Sequence[TeacherText],
        collator: Collator,
        plan: TrainingPlan,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin at step 0.

        Raises:
            RunError: there is no text.
        """
        from mlx.nn.utils import value_and_grad
        from mlx.optimizers import AdamW

        if not samples:
            raise RunError("There is no text to learn from.", "Give the run more --minutes.")
        self.student, self.step, self.tokens, self.spent_s = student, 0, 0, 0.0
        self._samples, self._collator, self._plan, self._clock = samples, collator, plan, clock
        self._optimizer = AdamW(plan.learning_rate, betas=[0.9, 0.95], weight_decay=plan.weight_decay)
        self._optimizer.init(student.trainable_parameters())
        self._loss_and_gradients: Any = value_and_grad(student, _loss)

    @property
    def progress(self) -> float:
        """The share of the training that is over."""
        return self._plan.progress(self.step, self.spent_s)

    def run(self) -> Iterator[float]:
        """Train to the end; yields the loss of each step."""
        began = self._clock() - self.spent_s
        for batch in self._batches():
            if self.progress >= 1:
                return
            yield self._learn(self._collator.batch([self._samples[i] for i in batch]))
            self.spent_s = self._clock() - began

    def _batches(self) -> Iterator[list[int]]:
        """Batches from the next step on, without end. The seed alone decides their order."""
        lengths = [self._collator.length(s) for s in self._samples]
        epoch, first = 0, self.step
        while True:
            batches = plan(lengths, self._plan.batch_tokens, self._plan.seed, epoch)
            yield from batches[first:]
            epoch, first = epoch + 1, max(0, first - len(batches))

    def _learn(self, batch: Batch) -> float:
        import mlx.core as mx
        from mlx import optimizers

        weight = tv_weight(self.progress)
        self._optimizer.learning_rate = rate(self.step, self.progress, self._plan.learning_rate)
        loss, gradients = self._loss_and_gradients(self.student, batch, weight)
        clip: Any = optimizers.clip_grad_norm  # has no annotations
        gradients, _ = clip(gradients, GRADIENT_NORM)
        self._optimizer.update(self.student, gradients)
        mx.eval(loss, self.student.parameters(), self._optimizer.state)
        value = float(loss.item())
        if not math.isfinite(value):
            raise RunError(
                f"The loss is {value} at step {self.step}: the training has diverged.",
                "Start again in an empty folder, with a smaller --learning-rate.",
            )
        self.step += 1
        self.tokens += len(batch.positions)
        return value

    def save(self, path: Path) -> None:
        """Write a checkpoint in one step.

        Raises:
            OSError: it cannot be written.
        """
        arrays = {f"student.{name}": w for name, w in flat(self.student.parameters()).items()}
        arrays |= {f"optimizer.{name}": w for name, w in flat(self._optimizer.state).items()}
        position = json.dumps({"step": self.step, "tokens": self.tokens, "spent_s": self.spent_s})
        write_whole(path, lambda partial: save(partial, arrays, {"position": position}))

    def load(self, path: Path) -> None:
        """Continue from a checkpoint.

        Raises:
            RunError: it is damaged, or not of this student.
        """
        import mlx.core as mx
        from mlx.utils import tree_unflatten

        try:
            arrays, metadata = load(path)
            position = json.loads(metadata["position"])
            student = [(n.removeprefix("student."), w) for n, w in arrays.items() if n.startswith("student.")]
            state = [(n.removeprefix("optimizer."), w) for n, w in arrays.items() if n.startswith("optimizer.")]
            self.student.load_weights(student)
            self._optimizer.state = tree_unflatten(state)
            self.step, self.tokens = int(position["step"]), int(position["tokens"])
            self.spent_s = float(position["spent_s"])
        except (RuntimeError, ValueError, KeyError, TypeError, OSError) as exc:
            raise RunError(
                f"The checkpoint {path} is damaged: {exc}.",
                "Delete it and start the same command again: the texts are kept.",
            ) from exc
        mx.eval(self.student.parameters(), self._optimizer.state)


def _loss(student: Any, batch: Batch, weight: float) -> Any:
    import mlx.core as mx

    hidden = student.model(mx.array(batch.inputs))
    # The head costs most: compute it only where a token of the target is predicted.
    hidden = hidden.reshape(-1, hidden.shape[-1])[mx.array(batch.positions)]
    head = student.model.embed_tokens.as_linear if student.args.tie_word_embeddings else student.lm_head
    return mixed(head(hidden), mx.array(batch.ids), mx.array(batch.logprobs), mx.array(batch.log_sums), weight)
