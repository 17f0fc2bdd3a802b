"""The finished draft: a folder that specviz loads, with a model card."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from specviz.core.errors import SettingsError
from specviz.distill.arrays import flat, save
from specviz.distill.card import card
from specviz.distill.student import BITS, Config, make, quantise
from specviz.engines.distilled import (
    DESCRIPTION_FILE,
    VOCABULARY_FILE,
    Description,
    DraftVocabulary,
    check_folder,
    save_vocabulary,
    write_description,
)

WEIGHTS_FILE = "model.safetensors"
#: draft.json is the last: a folder that has it is a draft.
_FILES = ("config.json", WEIGHTS_FILE, VOCABULARY_FILE, "README.md", DESCRIPTION_FILE)


def finish(
    folder: Path,
    config: Config,
    weights: dict[str, Any],
    vocabulary: DraftVocabulary,
    description: Description,
    *,
    bits: int = 6,
) -> Path:
    """Quantise a student and write all files of a draft's folder. Until the last one is in place it is no draft.

    Args:
        folder: made if it does not exist; files of an earlier draft are replaced.
        config: mlx-lm's Llama config, not quantised; `vocab_size` is the draft's.
        weights: name → array of numpy or MLX, as mlx-lm's Llama calls them: `model.embed_tokens.weight`,
            `model.layers.0.self_attn.q_proj.weight`, …, which are Hugging Face's names too.
        vocabulary: which target ids the rows of the embedding are.
        description: see `specviz.distill.card.describe`.
        bits: 4, 5, 6 or 8, in groups of 64; 16 for float16.

    Returns:
        The folder.

    Raises:
        SettingsError: other bits.
        UnsupportedModelError: the parts do not fit together.
        ValueError: a weight is missing, or of another shape.
        OSError: the folder cannot be written.
    """
    from mlx_lm.utils import save_config

    if bits not in BITS:
        raise SettingsError(f"--bits must be one of {', '.join(map(str, BITS))}, not {bits}.")
    tied = config.get("tie_word_embeddings", True)
    own = {name: w for name, w in weights.items() if not (tied and name == "lm_head.weight")}
    student, finished = quantise(make(config, own), config, bits)
    partial = folder / ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        save_config(dict(finished), partial / "config.json")
        save(partial / WEIGHTS_FILE, flat(student.parameters()), {"format": "mlx"})
        save_vocabulary(partial, vocabulary)
        # safetensors makes the file readable for its owner only: give it the rights of the other files.
        (partial / VOCABULARY_FILE).chmod((partial / "config.json").stat().st_mode & 0o777)
        write_description(partial, description)
        (partial / "README.md").write_text(card(description, config, bits), encoding="utf-8")
        check_folder(partial)
        (folder / DESCRIPTION_FILE).unlink(missing_ok=True)
        for name in _FILES:
            os.replace(partial / name, folder / name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder
