"""The target of a distillation, loaded, with all that the stages need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.core import names
from specviz.core.errors import UnknownModelError
from specviz.core.names import TOY
from specviz.core.ports import Model, Scorer, Tokenizer
from specviz.core.settings import Settings
from specviz.core.vocabulary import Vocabulary
from specviz.core.wait import Wait
from specviz.distill.teacher import BatchTeacher, ScorerTeacher, Teacher
from specviz.engines.mlx.blas import use_fast_blas
from specviz.engines.toy import ToyModel, ToyScorer, ToyTokenizer
from specviz.setup import loading, validation
from specviz.store.gguf.found import OLLAMA
from specviz.store.sources import resolve

if TYPE_CHECKING:
    from specviz.engines.mlx.language_model import LanguageModel

LoadModel = Callable[[str, Wait], Model]


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A loaded target.

    Attributes:
        name: `smollm2-135m`, without a prefix; or `toy`.
        teacher: writes texts.
        scorer: scores a text in one pass.
        tokenizer, vocabulary: its own; `vocabulary` has one piece for each id from 0 on.
        stop_ids: end a text.
        max_context: tokens.
        model: its weights; None for the toy.
    """

    name: str
    teacher: Teacher
    scorer: Scorer
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    stop_ids: frozenset[int]
    max_context: int
    model: LanguageModel | None = None

    @property
    def tokens(self) -> int:
        """The size of its vocabulary."""
        return len(self.vocabulary.pieces)

    def prompt_ids(self, prompt: str) -> list[int]:
        """The ids of a prompt in the target's chat template."""
        return self.tokenizer.chat_ids(prompt)[1]


def target_name(text: str) -> str:
    """The name of a target as in the settings: `toy`, or `local:` and the name of a model.

    Raises:
        UnknownModelError: the prefix of a target that does not run in this process.
    """
    target = names.parse_target(names.target_name(text))
    if target.kind not in ("local", "toy"):
        raise UnknownModelError(
            f"A draft cannot be distilled from {text!r}: the target's whole distributions are needed.",
            "Give a model on this machine: --target smollm2-135m.",
        )
    return str(target)


def check_target_name(text: str) -> str:
    """`target_name`, checked against what is on the disk, without a model library or the network.

    Raises:
        UnknownModelError, UnsupportedModelError: see `specviz.setup.validation.check`.
    """
    name = target_name(text)
    validation.check(Settings(target=name, draft="none"))
    return name


def open_subject(name: str, wait: Wait = Wait(), load: LoadModel = loading.load_mlx_model) -> Subject:
    """Fetch and load a target.

    Args:
        name: see `target_name`.
        wait: for a download; cancelled, it ends the writing of texts too.
        load: loads a model by its name.

    Raises:
        UnknownModelError, UnsupportedModelError, DownloadError: it cannot be loaded.
    """
    target = names.parse_target(target_name(name))
    if target.kind == "toy":
        return _toy(wait.cancelled)
    return subject_of(load(target.model, wait), wait.cancelled)


def subject_of(model: Model, cancelled: Callable[[], bool] = lambda: False) -> Subject:
    """A loaded model as the target. One of MLX writes several texts at once."""
    from specviz.engines.mlx.language_model import LanguageModel

    in_mlx = model if isinstance(model, LanguageModel) else None
    scorer = model.scorer()
    teacher = BatchTeacher(in_mlx, cancelled=cancelled) if in_mlx else ScorerTeacher(scorer, model.stop_ids, cancelled)
    tokenizer = model.tokenizer
    return Subject(
        name=_own_name(model.name),
        teacher=teacher,
        scorer=scorer,
        tokenizer=tokenizer,
        vocabulary=model.vocabulary,
        stop_ids=model.stop_ids,
        max_context=model.max_context,
        model=in_mlx,
    )


def _own_name(name: str) -> str:
    """A name that is valid on another machine too: the last part of a path."""
    source = resolve(name)
    is_path = source.kind in ("folder", "gguf", "package") and not source.name.startswith(OLLAMA)
    return Path(source.location).stem if is_path else source.name


def _toy(cancelled: Callable[[], bool]) -> Subject:
    use_fast_blas()  # MLX trains its student too
    tokenizer = ToyTokenizer()
    scorer = ToyScorer(tokenizer)
    return Subject(
        name=TOY,
        teacher=ScorerTeacher(scorer, tokenizer.stop_ids, cancelled),
        scorer=scorer,
        tokenizer=tokenizer,
        vocabulary=tokenizer.vocabulary,
        stop_ids=tokenizer.stop_ids,
        max_context=ToyModel.max_context,
    )
