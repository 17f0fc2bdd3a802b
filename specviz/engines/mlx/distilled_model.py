"""A distilled draft that MLX runs."""

from __future__ import annotations

from pathlib import Path

from specviz.engines.distilled import check_folder
from specviz.engines.distilled_model import DistilledModel
from specviz.engines.mlx.language_model import load_weights
from specviz.engines.mlx.scorer import MlxScorer


def load(name: str, folder: Path) -> DistilledModel:
    """Load a distilled draft from its folder.

    Raises:
        UnsupportedModelError: a file is missing, damaged, of another format, or does not fit the others.
    """
    description, vocabulary = check_folder(folder)
    weights = load_weights(name, folder)
    inputs = vocabulary.inputs
    return DistilledModel(
        name=name,
        vocabulary=vocabulary,
        description=description,
        max_context=weights.max_context,
        precision=weights.precision,
        engine="mlx",
        scorer=lambda: MlxScorer(name, weights.model, len(inputs), weights.max_context, inputs),
    )
