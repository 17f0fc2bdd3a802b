"""The state of an unfinished run on the disk: `.work` in the folder of the later draft."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specviz.core.errors import SettingsError
from specviz.distill.samples import Shard, load_shard, save_shard
from specviz.engines.distilled import (
    DESCRIPTION_FILE,
    VOCABULARY_FILE,
    DraftVocabulary,
    read_vocabulary,
    save_vocabulary,
)
from specviz.record.claim import claimed

WORK = ".work"


class Workplace:
    """Paths and contents of `.work`.

    Attributes:
        folder: of the later draft. root: `.work` in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / WORK
        self.recipe = self.root / "recipe.json"
        self.held_out = self.root / "held_out.npz"
        self.texts = self.root / "texts"
        self.checkpoint = self.root / "checkpoint.safetensors"

    def shard_path(self, index: int) -> Path:
        """The file of one shard of training texts."""
        return self.texts / f"{index:06d}.npz"

    def shards(self) -> list[Shard]:
        """All shards from the first on, without a gap.

        Raises:
            RunError: one is damaged.
        """
        found: list[Shard] = []
        while (path := self.shard_path(len(found))).exists():
            found.append(load_shard(path))
        return found

    def save_texts(self, index: int, shard: Shard) -> Shard:
        """Keep a shard of training texts; returns it as the next session will read it."""
        return save_shard(self.shard_path(index), shard)

    def vocabulary(self) -> DraftVocabulary | None:
        """The draft's vocabulary; None before it is chosen. After that no more texts are written."""
        return read_vocabulary(self.root) if (self.root / VOCABULARY_FILE).exists() else None

    def save_vocabulary(self, vocabulary: DraftVocabulary) -> None:
        """Keep the vocabulary, in one step."""
        partial = self.root / "partial"
        partial.mkdir(exist_ok=True)
        save_vocabulary(partial, vocabulary)
        os.replace(partial / VOCABULARY_FILE, self.root / VOCABULARY_FILE)

    def remove(self) -> None:
        """Delete `.work`: the draft is finished."""
        shutil.rmtree(self.root, ignore_errors=True)


@contextmanager
def occupied(folder: Path) -> Iterator[Workplace]:
    """The workplace of a folder, for one process at a time.

    Raises:
        SettingsError: the folder holds a finished draft, or other files.
        RunError: another process uses it.
        OSError: it cannot be made.
    """
    place = Workplace(folder)
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"{folder} is a file.", "Give --out a folder that is empty, or does not exist yet.")
    if folder.is_dir() and not place.root.exists() and any(folder.iterdir()):
        what = "a finished draft" if (folder / DESCRIPTION_FILE).exists() else "other files"
        raise SettingsError(f"{folder} holds {what}.", "Give --out a folder that is empty, or does not exist yet.")
    with claimed(place.root / "recipe.json", "specviz distill"):
        yield place
