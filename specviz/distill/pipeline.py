"""All stages of a run: prompts → texts on the disk → vocabulary → student → training → evaluation → finished folder.

Every stage writes its result to `.work` before the next one begins, and begins with what it finds there: a run that is
killed at any time continues from its last shard or checkpoint.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean

from specviz.core.acceptance import AcceptanceFigure, overall
from specviz.core.errors import RunError
from specviz.core.files import disk_errors
from specviz.core.names import TOY
from specviz.core.provenance import machine, versions
from specviz.core.wait import Progress, Wait
from specviz.distill import student as students
from specviz.distill.arrays import flat
from specviz.distill.batches import Collator
from specviz.distill.card import Training, describe
from specviz.distill.evaluate import quick, score_texts
from specviz.distill.folder import finish
from specviz.distill.prompts import Prompt
from specviz.distill.recipe import Recipe, agree, keep
from specviz.distill.samples import TeacherText
from specviz.distill.sources import GivenPrompts, OwnPrompts, Source, ToyPrompts, read_prompts
from specviz.distill.subject import Subject, open_subject
from specviz.distill.train import Trainer, TrainingPlan
from specviz.distill.vocabulary import Counts, choose, count, coverage
from specviz.distill.workplace import occupied
from specviz.distill.writing import TEMPERATURES, Learned, OnNews, Session, Writer
from specviz.engines.distilled import DraftVocabulary

#: The share of the time that is over when training ends. The rest is for the evaluation.
TRAINED = 0.9
CHECKPOINT_S = 60.0
_RATE_CUT, _RATE_NEW = 5e-4, 3e-3
#: Held-out texts, per temperature, that are measured during the training.
_QUICK = 10
_DISK_REMEDY = "Free some space or change its permissions; the same command then continues the run."
#: Package → module: what runs and trains the models, and keeps two processes out of one folder.
_LIBRARIES = {"mlx": "mlx", "mlx-lm": "mlx_lm", "filelock": "filelock"}
#: For the model card.
_OWN_PROMPTS = (
    "Prompts written from templates and topics that are part of specviz (specviz/distill/data), in ten domains; those "
    "that contain a text contain one of specviz's own or an earlier answer of the target."
)
_LEARNED = (
    "Forward KL to the target's kept tokens at temperature 1, moving to total variation at temperatures 0.8 and 0.3, "
    "on texts of the target alone; AdamW, warm-up and cosine decay, gradients clipped to norm 1."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run leaves.

    Attributes:
        folder: of the draft.
        complete: false where the run was stopped: the same command continues it.
        before, after: held-out acceptance of the student before and after training, by temperature; `before` is
            measured on fewer texts.
        figures: acceptance by domain.
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
    """Make a draft for a target, or continue an unfinished run.

    Args:
        folder: of the draft; `.work` in it holds the unfinished run.
        on_news: receives the progress, often.
        cancelled: called often; true ends the stage, and a draft is made of what there is.
        clock: seconds, from any start.
        checkpoint_s: between two checkpoints.

    Returns:
        None where the run was stopped before there was a text to learn from.

    Raises:
        SettingsError: the settings are not those of the unfinished run, or the folder holds other files.
        PromptError: a line of the file with prompts cannot be used.
        UnknownModelError, UnsupportedModelError, DownloadError: the target cannot be loaded.
        RunError: a library is missing; a damaged file; a full disk; another process that uses the folder.
    """
    _check_installed()
    given = read_prompts(Path(recipe.prompts)) if recipe.prompts else None
    with disk_errors(folder, RunError, _DISK_REMEDY), occupied(folder) as place:
        agree(recipe, place.recipe)
        subject = open_subject(recipe.target, Wait(on_news, cancelled))
        layers = _layers(recipe, subject)
        session = Session(recipe, place, subject, on_news, cancelled, clock)
        writer = Writer(session)
        for prompt in given or ():
            writer.check_prompt(prompt)
        keep(recipe, place.recipe)
        return _Run(session, layers, checkpoint_s).whole(writer, _source(recipe, subject, given))


def _check_installed() -> None:
    missing = [name for name, module in _LIBRARIES.items() if find_spec(module) is None]
    if missing:
        raise RunError(
            f"`specviz distill` needs {' and '.join(missing)}, which this Python does not have.",
            "Install what it needs (on macOS or Linux): python -m pip install -r requirements-distill.txt",
        )


def _layers(recipe: Recipe, subject: Subject) -> tuple[int, ...]:
    """The layers of the target that the student starts from; empty where the student is new."""
    if subject.model is None or not students.is_llama(subject.model):
        return ()
    depth = int(subject.model.config["num_hidden_layers"])
    layers = recipe.layers or students.default_layers(depth)
    students.check_layers(layers, depth)
    return layers


def _source(recipe: Recipe, subject: Subject, given: Sequence[Prompt] | None) -> Source:
    if given is not None:
        return GivenPrompts(given, recipe.seed)
    return ToyPrompts(recipe.seed) if subject.name == TOY else OwnPrompts(recipe.seed)


class _Run:
    """The stages behind the writing."""

    def __init__(self, session: Session, layers: tuple[int, ...], checkpoint_s: float) -> None:
        self._session, self._layers, self._checkpoint_s = session, layers, checkpoint_s
        self._recipe, self._place, self._subject = session.recipe, session.place, session.subject

    def whole(self, writer: Writer, source: Source) -> Outcome | None:
        held_out = writer.held_out()
        shards = writer.texts(source, held_out.seconds)
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
            machine=_machine(),
            date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            data=self._data(),
            recipe=_LEARNED,
            complete=complete,
            versions=versions(("mlx", "mlx-lm", "numpy")),
        )
        description = describe(self._subject.name, self._subject.vocabulary, training, figures)
        weights = flat(trainer.student.parameters())
        finish(self._place.folder, config, weights, vocabulary, description, bits=self._recipe.bits)
        if complete:
            self._place.remove()
        return Outcome(self._place.folder, complete, before, overall(figures), tuple(figures))

    def _vocabulary(self, counts: Counts) -> DraftVocabulary:
        found = self._place.vocabulary()
        if found is None:
            model = self._subject.model
            embeddings = students.embeddings_of(model) if model and self._layers else None
            special = (i for i in range(self._subject.tokens) if not self._subject.tokenizer.token_bytes(i))
            found = choose(counts, self._recipe.vocab, {*self._subject.stop_ids, *special}, embeddings)
            if not self._session.cancelled():
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
        """The trained student, and the acceptance of the untrained one."""
        model = self._subject.model
        start = students.initial_weights(model, self._layers, vocabulary) if model and self._layers else None
        student = students.make(config, start, self._recipe.seed)
        few = _few(held_out)

        def measure() -> Mapping[float, float]:
            return overall(quick(few, students.StudentScorer(student, vocabulary), vocabulary))

        before = measure()
        plan = TrainingPlan(
            seconds=max(1.0, TRAINED * self._session.total_s - written_s),
            steps=self._recipe.steps,
            batch_tokens=self._recipe.batch_tokens,
            learning_rate=self._recipe.learning_rate or (_RATE_CUT if self._layers else _RATE_NEW),
            seed=self._recipe.seed,
        )
        trainer = Trainer(student, samples, Collator(vocabulary), plan, self._session.clock)
        if self._place.checkpoint.exists():
            trainer.load(self._place.checkpoint)
        self._report(trainer, (), before if trainer.step == 0 else measure(), written_s)
        # Where the writing was stopped, the next session writes more texts and chooses another vocabulary.
        keeps = self._place.vocabulary() is not None
        saved_s, losses = trainer.spent_s, list[float]()
        for loss in trainer.run():
            losses.append(loss)
            if keeps and trainer.spent_s - saved_s >= self._checkpoint_s:
                trainer.save(self._place.checkpoint)
                self._report(trainer, losses, measure(), written_s)
                saved_s, losses = trainer.spent_s, []
            else:
                self._report(trainer, losses, None, written_s)
            if self._session.cancelled():
                break
        if keeps:
            trainer.save(self._place.checkpoint)
        return trainer, before

    def _report(
        self, trainer: Trainer, losses: Sequence[float], acceptance: Mapping[float, float] | None, written_s: float
    ) -> None:
        if self._recipe.steps is None:
            left_s = self._session.total_s - written_s - trainer.spent_s
        else:
            left_s = trainer.spent_s * (1 / trainer.progress - 1) if trainer.progress else self._session.total_s
        loss = fmean(losses) if losses else None
        self._session.on_news(Learned(trainer.step, trainer.tokens, loss, acceptance, max(0.0, left_s)))

    def _evaluate(
        self, trainer: Trainer, held_out: Sequence[TeacherText], vocabulary: DraftVocabulary, config: students.Config
    ) -> list[AcceptanceFigure]:
        """Acceptance with the weights as they are after quantisation; of a few texts where the run was stopped."""
        student = students.rounded(config, flat(trainer.student.parameters()), self._recipe.bits)
        texts = _few(held_out) if self._session.cancelled() else list(held_out)
        return score_texts(
            texts,
            self._subject.scorer,
            students.StudentScorer(student, vocabulary),
            vocabulary,
            lambda done: self._session.on_news(Progress("Measuring held-out acceptance", done, len(texts), "texts")),
        )

    def _data(self) -> str:
        written = f"They were answered at temperatures {', '.join(f'{t:g}' for t in TEMPERATURES)} in turn."
        if self._recipe.prompts:
            return f"Prompts of a file (SHA-256 {self._recipe.prompts_sha256}). {written}"
        if self._subject.name == TOY:
            return f"Prompts of three words of the toy's vocabulary. {written}"
        return f"{_OWN_PROMPTS} {written}"


def _machine() -> str:
    import mlx.core as mx

    found, device = machine(), mx.default_device().type.name
    return f"{found['processor']}, {found['cores']} cores, {found['system']}, MLX on the {device}"


def _few(samples: Sequence[TeacherText]) -> list[TeacherText]:
    """Some texts of each temperature: the first of every domain, then the second, and so on."""
    seen: Counter[tuple[float, str]] = Counter()
    rounds: dict[float, list[tuple[int, int]]] = {}
    for i, sample in enumerate(samples):
        key = (sample.temperature, sample.domain)
        rounds.setdefault(sample.temperature, []).append((seen[key], i))
        seen[key] += 1
    return [samples[i] for t in sorted(rounds) for _, i in sorted(rounds[t])[:_QUICK]]
