"""The simplest prediction: K = 1, from every token of a text, and nothing timed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specviz.core.acceptance import Rates, overlaps
from specviz.core.ports import Followable, Scorer
from specviz.core.sampling import Row
from specviz.core.settings import Sampling
from specviz.core.text_rows import TextRows

_NO_DRAFT = Row(np.empty(0), np.empty(0, dtype=np.int64))


def acceptance_along(target: Scorer, drafter: Followable, ids: Sequence[int], start: int, sampling: Sampling) -> Rates:
    """The chance that a draft token is kept, at each token of a text: see `specviz.core.acceptance`.

    `specviz.bench.forecast.predict` weighs the places where rounds of a run begin; here every token counts once.

    Args:
        target: gives rows over the target's tokens.
        ids: prompt and text, which the target has written at these settings. start: where the text begins.

    Returns:
        (tokens of the text,) from 0 to 1; 0 where nothing is drafted.
    """
    rows, follower = TextRows(target, ids, start), drafter.follow(ids, start, sampling)
    steps = (follower(at, 1) for at in range(len(ids) - start))
    return overlaps(
        (rows.behind(count) for count in range(start, len(ids))),
        (one[0].q if one else _NO_DRAFT for one in steps),
        sampling,
    )
