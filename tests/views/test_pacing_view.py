"""The sentence about a run that is shown more slowly than it is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from specviz.views.pacing import NAMES, RATES, PaceName, Standing, sentence

AT = Standing(shown=5, computed=12, tokens=34, budget=256)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (AT, "Running: 34 of at most 256 tokens"),
        (replace(AT, finished=True), "Running: 34 of at most 256 tokens"),
        (
            replace(AT, rounds_per_s=2.0),
            "Running: 34 of at most 256 tokens, 2 rounds/s. The models are ahead, at round 12.",
        ),
        (replace(AT, rounds_per_s=0.5, computed=5), "Running: 34 of at most 256 tokens, ½ round/s"),
        (
            replace(AT, rounds_per_s=8.0, finished=True),
            "Running: 34 of at most 256 tokens, 8 rounds/s. The models have finished, at round 12.",
        ),
        (replace(AT, paused=True), "Paused at round 5. The models are ahead, at round 12."),
        (replace(AT, paused=True, computed=5), "Paused at round 5. The models are working on the next one."),
        (replace(AT, paused=True, finished=True), "Paused at round 5. The models have finished, at round 12."),
        (replace(AT, paused=True, full=True), "Paused at round 5. The models are ahead, at round 12, and wait there."),
        (
            replace(AT, paused=True, shown=0, computed=0),
            "Paused before the first round. The models are working on the next one.",
        ),
        (replace(AT, paused=True, shown=0), "Paused before the first round. The models are ahead, at round 12."),
        (
            replace(AT, paused=True, shown=1234, computed=4321),
            "Paused at round 1,234. The models are ahead, at round 4,321.",
        ),
    ],
)  # fmt: skip
def test_the_sentence_matches_the_standing(at: Standing, said: str) -> None:
    assert sentence(at) == said


def test_every_pace_has_a_name_and_a_rate() -> None:
    assert list(NAMES) == list(RATES) == list(get_args(PaceName))
    assert len(set(NAMES.values())) == len(NAMES)
