"""A random distilled draft of a few thousand weights, for any target's vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from specviz.core.vocabulary import Vocabulary
from specviz.engines.distilled import Description, DraftVocabulary, save_vocabulary, write_description
from tests.engines.tiny import write_tiny_weights


def write_tiny_distilled(
    folder: Path, target: Vocabulary, kept: Sequence[int], name: str = "tiny", seed: int = 3, **config: Any
) -> Path:
    """Fill `folder` and return it.

    Args:
        target: the vocabulary of the target it serves.
        kept: target ids that the draft has, ascending; the others are read as the next lower one that it has.
        name: of the target, for the description.
        seed: of the weights. config: entries of config.json to add or change.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_tiny_weights(folder, len(kept), seed, **config)
    save_vocabulary(folder, draft_vocabulary(len(target.pieces), kept))
    write_description(folder, Description.of(name, target))
    return folder


def draft_vocabulary(target_tokens: int, kept: Sequence[int]) -> DraftVocabulary:
    tokens = np.array(kept, dtype=np.int32)
    inputs = np.searchsorted(tokens, np.arange(target_tokens), side="right") - 1
    return DraftVocabulary(tokens, np.maximum(inputs, 0).astype(np.int32))
