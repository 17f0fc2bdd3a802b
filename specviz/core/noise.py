"""Every random draw of a run, as three streams of a counter-based generator.

Each stream is a numpy Philox generator whose key and counter say what it is for, so it can be opened again at any time,
in any order and on another machine: nothing hands a generator around, and a draft and its target never share a draw by
accident. The word that numpy's generator counts itself stays 0 in front of each stream.

    stream   key         counter                       read by
    shared   [seed, 0]   [0, 0, 0, position]           plain decoding without a drafter; a rule that couples both sides
    target   [seed, 1]   [0, 0, 0, round]              the rule: its uniform draws, replacements and bonus tokens
    draft    [seed, 2]   [0, 0, candidate, round]      a drafter, for one candidate

A position is the number of token ids in front of the token, the prompt included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specviz.core.codec import Index

_SHARED, _TARGET, _DRAFT = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Noise:
    """The random draws of one round.

    Attributes:
        seed: of the run, from 0 to 2**64 - 1; 0 is a seed like any other.
        round: number of the round, from 0.
    """

    seed: int
    round: Index = 0

    def __post_init__(self) -> None:
        """Keep the seed out of the bits that tell the streams apart.

        Raises:
            ValueError: the seed is out of range; `specviz.core.codec` refuses such a value by it.
        """
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"a seed must be from 0 to 2**64 - 1, not {self.seed}")

    def draft(self, candidate: int = 0) -> np.random.Generator:
        """What a drafter draws one candidate with."""
        return self._stream(_DRAFT, candidate, self.round)

    def target(self) -> np.random.Generator:
        """What the rule draws with."""
        return self._stream(_TARGET, 0, self.round)

    def shared(self, position: int) -> np.random.Generator:
        """What the token at a position is drawn with, whatever the round."""
        return self._stream(_SHARED, 0, position)

    def _stream(self, stream: int, b: int, a: int) -> np.random.Generator:
        # Philox takes whole numbers of 128 and 256 bits, lowest word first.
        return np.random.Generator(np.random.Philox(key=self.seed | stream << 64, counter=b << 128 | a << 192))


def derived_seed(seed: int, *indices: int) -> int:
    """A seed of its own for each tuple of indices, as (prompt, repeat) of a benchmark: 64 bits of a hash of them."""
    return int(np.random.SeedSequence((seed, *indices)).generate_state(1, np.uint64)[0])
