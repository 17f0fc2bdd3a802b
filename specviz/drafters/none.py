"""Plain decoding: nothing is drafted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specviz.core.ports import NO_PROPOSAL, Candidate, Follower
from specviz.core.settings import Sampling


class NoDrafter:
    """Proposes nothing, so every round is one token of the target's own."""

    def __init__(self) -> None:
        self.name = "none"
        self.max_context: int | None = None

    def propose(
        self, context_ids: Sequence[int], k: int, sampling: Sampling, rng: np.random.Generator, n: int = 1
    ) -> list[Candidate]:
        """One empty candidate."""
        return [NO_PROPOSAL]

    def follow(self, ids: Sequence[int], start: int, sampling: Sampling) -> Follower:
        """No steps anywhere."""
        return lambda at, k: ()

    def reset(self) -> None:
        """Nothing is kept between calls."""
