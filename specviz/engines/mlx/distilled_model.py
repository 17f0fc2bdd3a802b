"""A distilled draft that MLX runs: the weights of a folder, and the map to its target's tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.core.vocabulary import Vocabulary
from specviz.engines.distilled import Description, DraftVocabulary, check_folder, check_target
from specviz.engines.mlx.language_model import load_weights
from specviz.engines.mlx.scorer import MlxScorer


@dataclass(frozen=True, slots=True, eq=False)
class DistilledModel:
    """A loaded draft. Only the thread that loaded it may use it: MLX arrays belong to their thread.

    It is no `specviz.core.ports.Model`: it has no tokenizer, and its rows are over a part of its target's tokens.

    Attributes:
        name: as the user gave it.
        model: mlx-lm's `mlx.nn.Module`.
        vocabulary: which of its target's tokens it has. description: the target that it was trained for.
        max_context: tokens. parameters: their number.
        precision: see `LanguageModel`. engine: what runs it.
    """

    name: str
    model: Any
    vocabulary: DraftVocabulary
    description: Description
    max_context: int
    parameters: int
    precision: str
    engine: str = "mlx"

    def scorer(self) -> MlxScorer:
        """A new, empty cache. It takes the target's ids, and gives logits (rows, V) over the draft's own tokens."""
        inputs = self.vocabulary.inputs
        return MlxScorer(self.name, self.model, len(inputs), self.max_context, inputs)

    def check_target(self, target: Vocabulary) -> None:
        """Refuse a target that it was not trained for.

        Raises:
            PairingError: see `specviz.engines.distilled.check_target`.
        """
        check_target(self.name, self.description, target)


def load(name: str, folder: Path) -> DistilledModel:
    """Load a distilled draft from its folder.

    Raises:
        UnsupportedModelError: a file is missing, damaged, of another format, or does not fit the others.
    """
    description, vocabulary = check_folder(folder)
    weights = load_weights(name, folder)
    return DistilledModel(
        name=name,
        model=weights.model,
        vocabulary=vocabulary,
        description=description,
        max_context=weights.max_context,
        parameters=weights.parameters,
        precision=weights.precision,
    )
