"""Every random draw of a run, as three streams of a counter-based generator.

Each stream is a numpy Philox generator whose key and counter identify its purpose, so it can be opened again at any
time, in any order and on another machine. No generator object is passed around, and a draft and its target never share
a draw by accident. The lowest word of the counter, which numpy increments itself, starts at 0 in each stream.

    stream   key         counter                       read by
    shared   [seed, 0]   [0, 0, 0, position]           plain decoding without a drafter; a rule that couples both sides
    target   [seed, 1]   [0, 0, 0, round]              the rule: its uniform draws, replacements and bonus tokens
    draft    [seed, 2]   [0, 0, candidate, round]      a drafter, for one candidate

A position is the number of token ids before the token, the prompt included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import DTypeLike, NDArray

from specviz.core.codec import Index

_SHARED, _TARGET, _DRAFT = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Noise:
    """The random draws of one round.

    Attributes:
        seed: of the run, from 0 to 2**64 - 1; 0 is a valid seed.
        round: number of the round, from 0.
    """

    seed: int
    round: Index = 0

    def __post_init__(self) -> None:
        """Check that the seed fits into 64 bits: the bits above them identify the stream.

        Raises:
            ValueError: the seed is out of range; `specviz.core.codec` reports it as a validation error.
        """
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"a seed must be from 0 to 2**64 - 1, not {self.seed}")

    def draft(self, candidate: int = 0) -> np.random.Generator:
        """The stream from which a drafter draws one candidate."""
        return self._stream(_DRAFT, candidate, self.round)

    def target(self) -> np.random.Generator:
        """The stream from which the rule draws."""
        return self._stream(_TARGET, 0, self.round)

    def shared(self, position: int) -> np.random.Generator:
        """The stream for the token at a position, independent of the round."""
        return self._stream(_SHARED, 0, position)

    def _stream(self, stream: int, b: int, a: int) -> np.random.Generator:
        counter = np.array((0, 0, b, a), dtype=np.uint64)
        # numpy documents any ISeedSequence as a seed; its types know SeedSequence only.
        bits = np.random.Philox(_Key(self.seed, stream), counter=counter)  # type: ignore[arg-type]
        return np.random.Generator(bits)


class _Key(ISeedSequence):
    """The two words of a Philox key. With `key=`, numpy also reads the system's entropy, which takes longer."""

    def __init__(self, *words: int) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> NDArray[np.uint64]:
        """Called by Philox for exactly two words of 64 bits."""
        return np.array(self._words, dtype=np.uint64)


def derived_seed(seed: int, *indices: int) -> int:
    """A different seed for each tuple of indices, such as (prompt, repeat) of a benchmark: a 64-bit hash of them."""
    return int(np.random.SeedSequence((seed, *indices)).generate_state(1, np.uint64)[0])
