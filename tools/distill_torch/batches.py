"""Texts of the target, as a student learns from them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from model import DEVICE
from progress import log
from torch import Tensor

from specviz.distill.samples import TeacherText, load_shard


@dataclass
class Batch:
    """ids (B, L) of the target, padded on the right; where (n,) flat positions whose next token the target wrote."""

    ids: Tensor
    where: Tensor
    top: Tensor
    logp: Tensor
    sums: Tensor


def batches(folder: Path, padded: int, chooser: random.Random) -> Iterator[Batch]:
    """For ever: texts of about one length together, in random order; shards that are new come in with each pass."""
    samples: dict[Path, tuple[TeacherText, ...]] = {}
    while True:
        for path in sorted(folder.glob("*.npz")):
            if path not in samples:
                samples[path] = load_shard(path).samples
        everything = [s for part in samples.values() for s in part]
        log(f"{len(everything):,} texts, {sum(len(s.token_ids) for s in everything):,} tokens of the target")
        lengths = [len(s.prompt_ids) + len(s.token_ids) for s in everything]
        order = sorted(range(len(everything)), key=lambda i: lengths[i] + chooser.randint(0, 24))
        groups: list[list[int]] = [[]]
        longest = 0
        for i in order:
            longest = max(longest, lengths[i])
            if (len(groups[-1]) + 1) * longest > padded and groups[-1]:
                groups.append([])
                longest = lengths[i]
            groups[-1].append(i)
        chooser.shuffle(groups)
        for group in groups:
            yield collate([everything[i] for i in group])


def collate(samples: Sequence[TeacherText]) -> Batch:
    longest = max(len(s.prompt_ids) + len(s.token_ids) for s in samples)
    ids = np.zeros((len(samples), longest), dtype=np.int64)
    where = []
    for k, s in enumerate(samples):
        text = np.concatenate([s.prompt_ids, s.token_ids])
        ids[k, : len(text)] = text
        where.append(k * longest + len(s.prompt_ids) - 1 + np.arange(len(s.token_ids)))
    parts = (np.concatenate([getattr(s.rows, n) for s in samples]) for n in ("ids", "logprobs", "log_sums"))
    arrays = (ids, np.concatenate(where), *parts)
    return Batch(*(torch.from_numpy(a).to(DEVICE) for a in arrays))
