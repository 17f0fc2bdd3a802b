"""Texts of the target with its probabilities, and the shards that keep them on the disk."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specviz.core.errors import RunError
from specviz.core.files import write_whole

Floats = NDArray[np.float32]
Int32s = NDArray[np.int32]

#: Tokens kept per position.
TOP = 64
#: Temperatures below 1 at which student and target are compared: a common one for sampling, and a low one that stands
#: for greedy decoding and has a gradient.
SOFT_TEMPERATURES = (0.8, 0.3)
#: In place of -inf: 0 · -inf would be nan.
FLOOR = -1e4


@dataclass(frozen=True, slots=True, eq=False)
class TeacherRows:
    """The target's distributions over the next token, of which the most probable tokens are kept.

    Attributes:
        ids: (L, N) token ids, unordered.
        logprobs: (L, N) natural log-probabilities at temperature 1; `FLOOR` for probability 0.
        log_sums: (L, len(SOFT_TEMPERATURES)) ln Σ exp(logprob / T) over the whole vocabulary, so that
            p_T = exp(logprob / T - log_sum).
    """

    ids: Int32s
    logprobs: Floats
    log_sums: Floats

    def tail(self, n: int) -> TeacherRows:
        """The last n rows."""
        at = len(self.ids) - n
        return TeacherRows(self.ids[at:], self.logprobs[at:], self.log_sums[at:])


@dataclass(frozen=True, slots=True, eq=False)
class TeacherText:
    """One text of the target.

    Attributes:
        domain: of the prompt.
        temperature: at which it was drawn.
        prompt_ids: (P,) chat template included.
        token_ids: (L,) what the target wrote, the stop token included.
        rows: (L,) `rows[i]` is what `token_ids[i]` was drawn from, at temperature 1.
    """

    domain: str
    temperature: float
    prompt_ids: Int32s
    token_ids: Int32s
    rows: TeacherRows


def rows_of(logits: Floats, top: int = TOP) -> TeacherRows:
    """What is kept of (L, V) rows of logits, which may have any offset."""
    top = min(top, logits.shape[1])
    highest = logits.max(axis=1, keepdims=True)
    shifted = np.maximum(logits - highest, np.float32(FLOOR))
    log_total = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    sums = [
        np.log(np.exp(shifted / np.float32(t)).sum(axis=1)) - log_total[:, 0] / np.float32(t) for t in SOFT_TEMPERATURES
    ]
    ids = np.argpartition(-shifted, top - 1, axis=1)[:, :top].astype(np.int32)
    logprobs = np.maximum(np.take_along_axis(shifted, ids, axis=1) - log_total, np.float32(FLOOR))
    return TeacherRows(ids, logprobs, np.stack(sums, axis=1).astype(np.float32))


def stack_rows(parts: Sequence[TeacherRows]) -> TeacherRows:
    """The rows of several parts, one after the other."""
    return TeacherRows(
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.logprobs for part in parts]),
        np.concatenate([part.log_sums for part in parts]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """Texts that were written together.

    Attributes:
        seconds: how long it took to write them.
    """

    samples: tuple[TeacherText, ...]
    seconds: float

    @property
    def tokens(self) -> int:
        """What the target wrote."""
        return sum(len(sample.token_ids) for sample in self.samples)


def save_shard(path: Path, shard: Shard) -> Shard:
    """Write a shard in one step. A token takes 256 bytes where ids fit 16 bits.

    Returns:
        The shard as it will be read: its log-probabilities are rounded to 16 bits.

    Raises:
        OSError: it cannot be written.
    """
    samples = shard.samples
    rows = stack_rows([s.rows for s in samples])
    small = rows.ids.size == 0 or int(rows.ids.max()) < 2**16
    arrays: dict[str, Any] = {
        "seconds": np.float64(shard.seconds),
        "domains": np.array([s.domain for s in samples]),
        "temperatures": np.array([s.temperature for s in samples]),
        "prompt_lengths": np.array([len(s.prompt_ids) for s in samples]),
        "lengths": np.array([len(s.token_ids) for s in samples]),
        "prompt_ids": np.concatenate([s.prompt_ids for s in samples]),
        "token_ids": np.concatenate([s.token_ids for s in samples]),
        "row_ids": rows.ids.astype(np.uint16 if small else np.int32),
        "row_logprobs": rows.logprobs.astype(np.float16),
        "row_log_sums": rows.log_sums,
    }

    def write(partial: Path) -> None:
        with partial.open("wb") as file:
            np.savez(file, **arrays)

    write_whole(path, write)
    return load_shard(path)


def load_shard(path: Path) -> Shard:
    """Read a shard.

    Raises:
        RunError: it is damaged.
    """
    try:
        # np.load leaves a damaged file open if it gets a path.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
        return _shard_of(found)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as exc:
        raise RunError(f"The shard {path} is damaged: {exc}.", "Delete it and start the same command again.") from exc


def _shard_of(found: dict[str, NDArray[Any]]) -> Shard:
    prompt_ends = np.cumsum(found["prompt_lengths"])
    ends = np.cumsum(found["lengths"])
    samples = []
    for i, domain in enumerate(found["domains"]):
        prompt = slice(prompt_ends[i] - found["prompt_lengths"][i], prompt_ends[i])
        text = slice(ends[i] - found["lengths"][i], ends[i])
        rows = TeacherRows(
            found["row_ids"][text].astype(np.int32),
            found["row_logprobs"][text].astype(np.float32),
            found["row_log_sums"][text],
        )
        samples.append(
            TeacherText(
                str(domain),
                float(found["temperatures"][i]),
                found["prompt_ids"][prompt],
                found["token_ids"][text],
                rows,
            )
        )
    return Shard(tuple(samples), float(found["seconds"]))
