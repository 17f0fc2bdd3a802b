"""Plain decoding: nothing is drafted."""

from __future__ import annotations

from collections.abc import Sequence

from specviz.core.noise import Noise
from specviz.core.ports import Follower
from specviz.core.rounds import NO_DRAFT, Draft, Explain
from specviz.core.settings import Sampling


class NoDrafter:
    """Proposes nothing, so every round emits one token of the target."""

    def __init__(self) -> None:
        self.name = "none"
        self.max_context: int | None = None

    def propose(
        self,
        context_ids: Sequence[int],
        k: int,
        sampling: Sampling,
        noise: Noise,
        n: int = 1,
        explain: Explain = 2,
    ) -> Draft:
        """No candidate."""
        return NO_DRAFT

    def follow(self, ids: Sequence[int], start: int, sampling: Sampling) -> Follower:
        """No steps anywhere."""
        return lambda at, k: ()

    def reset(self) -> None:
        """Nothing is kept between calls."""
