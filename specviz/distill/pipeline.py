"""The whole way: prompts → texts on disk → vocabulary → student → training → evaluation → finished folder.

Every stage leaves what it made in `.work` before the next begins, and begins with what it finds there: a run that is
killed at any time goes on from its last shard or checkpoint.
"""

from __future__ import annotations

import datetime
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.core.acceptance import AcceptanceFigure, overall
from specviz.core.errors import RunError
from specviz.core.files import disk_errors
from specviz.core.ports import Progress
from specviz.distill import student as students
from specviz.distill.arrays import flat
from specviz.distill.batches import Collator
from specviz.distill.card import Training, describe, versions
from specviz.distill.evaluate import quick, score_texts
from specviz.distill.folder import finish
from specviz.distill.prompts import Prompt
from specviz.distill.recipe import Recipe, agree, keep
from specviz.distill.samples import TeacherText
from specviz.distill.sources import GivenPrompts, OwnPrompts, Source, ToyPrompts, read_prompts
from specviz.distill.subject import TOY, Subject, open_subject
from specviz.distill.train import Trainer, TrainingPlan
from specviz.distill.vocabulary import choose, count, coverage
from specviz.distill.workplace import Workplace, occupied
from specviz.distill.writing import TEMPERATURES, Writing, Wrote
from specviz.engines.distilled import DraftVocabulary

#: The share of the time that is over when training ends; the rest is for the evaluation.
TRAINED = 0.9
CHECKPOINT_S = 60.0
_RATE_CUT, _RATE_NEW = 5e-4, 3e-3
#: Held-out texts, per temperature, that are looked at while training.
_QUICK = 10
_DISK_REMEDY = "Free some space or look at its permissions; the same command then goes on from where it stopped."


@dataclass(frozen=True, slots=True)
class Learned:
    """News of the training.

    Attributes:
        step, tokens: so far, over all sessions.
        loss: mean since the last news; None at a checkpoint before the first step.
        acceptance: temperature → on held-out texts, at a checkpoint; None between two.
        left_s: until the run is over.
    """

    step: int
    tokens: int
    loss: float | None
    acceptance: Mapping[float, float] | None
    left_s: float


News = Progress | Wrote | Learned
OnNews = Callable[[News], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left behind.

    Attributes:
        folder: of the draft.
        complete: false where it was stopped: the same command goes on.
        before, after: held-out acceptance of the student before training and in the end, by temperature; `before` is
            of fewer texts.
        figures: by domain.
    """

    folder: Path
    complete: bool
    before: Mapping[float, float]
    after: Mapping[float, float]
    figures: tuple[AcceptanceFigure, ...]


def distill(
    recipe: Recipe,
    folder: Path,
    on_news: OnNews = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
    checkpoint_s: float = CHECKPOINT_S,
) -> Outcome | None:
    """Make a draft for a target, or go on making it.

    Args:
        folder: of the draft; `.work` in it holds the unfinished run.
        on_news: told often.
        cancelled: asked often; true ends the stage, and what there is becomes a draft.
        clock: seconds, from any beginning.
        checkpoint_s: between two checkpoints.

    Returns:
        None when it was stopped before there was anything to learn from.

    Raises:
        SettingsError: the settings are not those of the unfinished run, or the folder holds something else.
        PromptError: a bad line in the file with prompts.
        UnknownModelError, UnsupportedModelError, DownloadError: the target cannot be had.
        RunError: a damaged file; a full disk; another process at work in the folder.
    """
    given = read_prompts(Path(recipe.prompts)) if recipe.prompts else None
    with disk_errors(folder, RunError, _DISK_REMEDY), occupied(folder) as place:
        agree(recipe, place.recipe)
        subject = open_subject(recipe.target, on_news, cancelled)
        layers = _layers(recipe, subject)
        run = _Run(recipe, place, subject, layers, on_news, cancelled, clock, checkpoint_s)
        writing = Writing(recipe, place, subject, on_news, cancelled, clock)
        for prompt in given or ():
            writing.check_prompt(prompt)
        keep(recipe, place.recipe)
        return run.whole(writing, _source(recipe, subject, given))


def _layers(recipe: Recipe, subject: Subject) -> tuple[int, ...]:
    if not students.is_llama(subject.model):
        return ()
    assert subject.model is not None
    depth = int(subject.model.config["num_hidden_layers"])
    layers = recipe.layers or students.default_layers(depth)
    students.check_layers(layers, depth)
    return layers


def _source(recipe: Recipe, subject: Subject, given: Sequence[Prompt] | None) -> Source:
    if given is not None:
        return GivenPrompts(given, recipe.seed)
    return ToyPrompts(recipe.seed) if subject.name == TOY else OwnPrompts(recipe.seed)


class _Run:
    def __init__(
        self,
        recipe: Recipe,
        place: Workplace,
        subject: Subject,
        layers: tuple[int, ...],
        on_news: OnNews,
        cancelled: Callable[[], bool],
        clock: Callable[[], float],
        checkpoint_s: float,
    ) -> None:
        self._recipe, self._place, self._subject, self._layers = recipe, place, subject, layers
        self._news, self._cancelled, self._clock, self._checkpoint_s = on_news, cancelled, clock, checkpoint_s
        self._total_s = recipe.minutes * 60

    def whole(self, writing: Writing, source: Source) -> Outcome | None:
        held_out = writing.held_out()
        shards = writing.texts(source, held_out.seconds)
        samples = [sample for shard in shards for sample in shard.samples]
        if not samples:
            return None
        counts = count((s.token_ids for s in samples), self._subject.tokens)
        vocabulary = self._vocabulary(counts)
        config = students.config_of(
            self._subject.model, self._layers, len(vocabulary.tokens), self._subject.max_context
        )
        spent_s = held_out.seconds + sum(shard.seconds for shard in shards)
        trainer, before = self._train(samples, held_out.samples, vocabulary, config, spent_s)
        figures = self._evaluate(trainer, held_out.samples, vocabulary, config)
        complete = trainer.progress >= 1
        training = Training(
            command=self._recipe.command(),
            seed=self._recipe.seed,
            layers=self._layers,
            texts=len(samples),
            tokens=int(counts.sum()),
            tokens_seen=trainer.tokens,
            coverage=coverage(count((s.token_ids for s in held_out.samples), self._subject.tokens), vocabulary),
            minutes=(spent_s + trainer.spent_s) / 60,
            machine=machine(),
            date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            data=self._data(),
            recipe=self._words(),
            complete=complete,
            versions=versions(),
        )
        description = describe(self._subject.name, self._subject.vocabulary, training, figures)
        weights = flat(trainer.student.parameters())
        finish(self._place.folder, config, weights, vocabulary, description, bits=self._recipe.bits)
        if complete:
            self._place.remove()
        return Outcome(self._place.folder, complete, before, overall(figures), tuple(figures))

    def _vocabulary(self, counts: Any) -> DraftVocabulary:
        found = self._place.vocabulary()
        if found is None:
            model = self._subject.model
            embeddings = students.embeddings_of(model) if model and students.is_llama(model) else None
            special = (i for i in range(self._subject.tokens) if not self._subject.tokenizer.token_bytes(i))
            found = choose(counts, self._recipe.vocab, {*self._subject.stop_ids, *special}, embeddings)
            if not self._cancelled():
                self._place.save_vocabulary(found)
        return found

    def _train(
        self,
        samples: Sequence[TeacherText],
        held_out: Sequence[TeacherText],
        vocabulary: DraftVocabulary,
        config: students.Config,
        written_s: float,
    ) -> tuple[Trainer, Mapping[float, float]]:
        model = self._subject.model
        start = students.initial_weights(model, self._layers, vocabulary) if model and self._layers else None
        student = students.make(config, start, self._recipe.seed)
        looked_at = _few(held_out)

        def measure() -> Mapping[float, float]:
            return overall(quick(looked_at, students.StudentScorer(student, vocabulary), vocabulary))

        before = measure()
        plan = TrainingPlan(
            seconds=max(1.0, TRAINED * self._total_s - written_s),
            steps=self._recipe.steps,
            batch_tokens=self._recipe.batch_tokens,
            learning_rate=self._recipe.learning_rate or (_RATE_CUT if self._layers else _RATE_NEW),
            seed=self._recipe.seed,
        )
        trainer = Trainer(student, samples, Collator(vocabulary), plan, self._clock)
        if self._place.checkpoint.exists():
            trainer.load(self._place.checkpoint)
        self._tell(trainer, None, before if trainer.step == 0 else measure(), written_s)
        # Stopped while texts were written: the next session writes more of them and chooses another vocabulary.
        going_on = self._place.vocabulary() is not None
        saved_s, losses = trainer.spent_s, []
        for loss in trainer.run():
            losses.append(loss)
            if going_on and trainer.spent_s - saved_s >= self._checkpoint_s:
                trainer.save(self._place.checkpoint)
                self._tell(trainer, _mean(losses), measure(), written_s)
                saved_s, losses = trainer.spent_s, []
            else:
                self._tell(trainer, _mean(losses), None, written_s)
            if self._cancelled():
                break
        if going_on:
            trainer.save(self._place.checkpoint)
        return trainer, before

    def _tell(
        self, trainer: Trainer, loss: float | None, acceptance: Mapping[float, float] | None, written_s: float
    ) -> None:
        if self._recipe.steps is None:
            left_s = self._total_s - written_s - trainer.spent_s
        else:
            left_s = trainer.spent_s * (1 / trainer.progress - 1) if trainer.progress else self._total_s
        self._news(Learned(trainer.step, trainer.tokens, loss, acceptance, max(0.0, left_s)))

    def _evaluate(
        self, trainer: Trainer, held_out: Sequence[TeacherText], vocabulary: DraftVocabulary, config: students.Config
    ) -> list[AcceptanceFigure]:
        """By the weights that are kept: those behind the rounding. A stopped run looks at few texts."""
        student = students.rounded(config, flat(trainer.student.parameters()), self._recipe.bits)
        texts = _few(held_out) if self._cancelled() else list(held_out)
        return score_texts(
            texts,
            self._subject.scorer,
            students.StudentScorer(student, vocabulary),
            vocabulary,
            lambda done: self._news(Progress("Measuring held-out acceptance", done, len(texts), "texts")),
        )

    def _data(self) -> str:
        written = f"They were answered at temperatures {', '.join(f'{t:g}' for t in TEMPERATURES)} in turn."
        if self._recipe.prompts:
            return f"Prompts of a file (SHA-256 {self._recipe.prompts_sha256}). {written}"
        if self._subject.name == TOY:
            return f"Prompts of three words of the toy's vocabulary. {written}"
        return (
            "Prompts written from templates and topics that are part of specviz (specviz/distill/prompts.py), in ten "
            "domains; those that bring a text along bring one of specviz's own or an earlier answer of the target. "
            + written
        )

    def _words(self) -> str:
        return (
            "Forward KL to the target's kept tokens at temperature 1, then more and more the total variation at "
            "temperatures 0.8 and 0.3, on the target's own tokens alone; AdamW, warm-up and cosine, gradients clipped "
            "to norm 1."
        )


def machine() -> str:
    """What this runs on, for a person."""
    import mlx.core as mx

    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, MLX on the {mx.default_device().type.name}"
    )


def _few(samples: Sequence[TeacherText]) -> list[TeacherText]:
    """Some texts of each temperature: the first of every domain, then the second, and so on."""
    seen: Counter[tuple[float, str]] = Counter()
    rounds: dict[float, list[tuple[int, int]]] = {}
    for i, sample in enumerate(samples):
        key = (sample.temperature, sample.domain)
        rounds.setdefault(sample.temperature, []).append((seen[key], i))
        seen[key] += 1
    return [samples[i] for t in sorted(rounds) for _, i in sorted(rounds[t])[:_QUICK]]


def _mean(losses: Sequence[float]) -> float:
    return sum(losses) / len(losses)
