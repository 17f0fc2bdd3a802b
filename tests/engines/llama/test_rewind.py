"""A cache that cannot be rewound is found out by what it gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from specviz.core.errors import RunError, UnsupportedModelError
from specviz.core.ports import Scorer
from specviz.core.sampling import Logits
from specviz.engines.llama.rewind import check_rewindable

VOCABULARY = 50


class Recurrent(Scorer):
    """A state that has seen every id it was ever given; or, with `window`, one that forgets nothing until then."""

    def __init__(self, forgets: bool = False, window: int = 0) -> None:
        self.forgets, self.window = forgets, window
        self.reset()

    def reset(self) -> None:
        self.seen: list[int] = []

    def score(self, token_ids: Sequence[int], rows: int) -> Logits:
        ids = list(token_ids)
        kept = 0
        while kept < min(len(self.seen), len(ids)) and self.seen[kept] == ids[kept]:
            kept += 1
        rewound = kept < len(self.seen)
        if rewound and self.forgets and len(self.seen) > self.window:
            self.seen = self.seen + ids[kept:]
        else:
            self.seen = ids
        value = float(sum((i + 1) * token for i, token in enumerate(self.seen)))
        return np.full((rows, VOCABULARY), value, np.float32)


def test_a_cache_that_follows_the_context_passes_and_is_empty_again() -> None:
    scorer = Recurrent()
    check_rewindable(scorer, "plain", VOCABULARY, window=16)
    assert scorer.seen == []


def test_a_state_that_keeps_what_was_removed_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="mamba keeps a state that cannot be rewound"):
        check_rewindable(Recurrent(forgets=True), "mamba", VOCABULARY)


def test_a_window_is_tried_behind_its_end() -> None:
    check_rewindable(Recurrent(forgets=True, window=32), "short", VOCABULARY)
    with pytest.raises(UnsupportedModelError, match="after 36 tokens"):
        check_rewindable(Recurrent(forgets=True, window=32), "gemma", VOCABULARY, window=32)


def test_a_library_that_refuses_says_why() -> None:
    class Refusing(Recurrent):
        def score(self, token_ids: Sequence[int], rows: int) -> Logits:
            if len(self.seen) > len(token_ids) - rows:
                raise RunError("The cache of rwkv cannot be rewound.")
            return super().score(token_ids, rows)

    with pytest.raises(UnsupportedModelError, match="rwkv cannot be rewound"):
        check_rewindable(Refusing(), "rwkv", VOCABULARY)
