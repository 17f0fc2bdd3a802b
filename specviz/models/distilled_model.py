"""A distilled draft, loaded: the weights of `specviz.models.distilled`'s folder and the map to its target's tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specviz.models import store
from specviz.models.distilled import Description, DraftVocabulary, check_folder, check_target
from specviz.models.language_model import load_weights
from specviz.models.pairing import Vocabulary
from specviz.models.scorer import Scorer
from specviz.ports import OnProgress, Progress


@dataclass(frozen=True, slots=True, eq=False)
class DistilledModel:
    """A loaded draft. Only the thread that loaded it may use it: MLX arrays belong to their thread.

    Attributes:
        name: as it was asked for.
        model: mlx-lm's `mlx.nn.Module`.
        vocabulary: which target tokens it has. description: the target that it was trained for.
        max_context: tokens. parameters: how many.
        precision: for a person: "float32" or "as stored".
    """

    name: str
    model: Any
    vocabulary: DraftVocabulary
    description: Description
    max_context: int
    parameters: int
    precision: str

    def scorer(self) -> Scorer:
        """A new, empty cache. It takes the target's ids, and gives logits (rows, V) over the draft's own tokens."""
        inputs = self.vocabulary.inputs
        return Scorer(self.name, self.model, len(inputs), self.max_context, inputs)

    def check_target(self, target: Vocabulary) -> None:
        """Refuse a target that it was not trained for.

        Raises:
            PairingError: see `specviz.models.distilled.check_target`.
        """
        check_target(self.name, self.description, target)


def load(
    name_or_path: str,
    on_progress: OnProgress = lambda progress: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> DistilledModel:
    """Load a distilled draft.

    Args:
        name_or_path: see `specviz.models.store`.
        on_progress: told about a download, and about the load.
        cancelled: asked during a download, which ends it.

    Raises:
        UnknownModelError, DownloadError: see `specviz.models.store.pull`.
        UnsupportedModelError: a file is missing, damaged, of another format, or does not fit the others.
    """
    folder = store.pull(name_or_path, on_progress, cancelled)
    on_progress(Progress(f"Loading {name_or_path}", 0, 1))
    description, vocabulary = check_folder(folder)
    weights = load_weights(name_or_path, folder)
    on_progress(Progress(f"Loading {name_or_path}", 1, 1))
    return DistilledModel(
        name=name_or_path,
        model=weights.model,
        vocabulary=vocabulary,
        description=description,
        max_context=weights.max_context,
        parameters=weights.parameters,
        precision=weights.precision,
    )
