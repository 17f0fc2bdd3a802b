"""The paces that can be chosen, and the sentence about a run that is shown more slowly than it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PaceName = Literal["free", "4", "2", "1", "half", "step"]

#: Their names on the page.
NAMES: dict[PaceName, str] = {
    "free": "as it comes",
    "4": "4 rounds/s",
    "2": "2 rounds/s",
    "1": "1 round/s",
    "half": "½ round/s",
    "step": "step by step",
}
RATES: dict[PaceName, float | None] = {"free": None, "4": 4.0, "2": 2.0, "1": 1.0, "half": 0.5, "step": None}


@dataclass(frozen=True, slots=True)
class Standing:
    """How many rounds of a run are shown, and how many are computed.

    Attributes:
        shown, computed: rounds. tokens: of the output, shown. budget: the largest number of tokens.
        finished: the models have finished. full: they wait until more is shown.
        rounds_per_s: the pace; None shows everything at once.
    """

    shown: int
    computed: int
    tokens: int
    budget: int
    paused: bool = False
    finished: bool = False
    full: bool = False
    rounds_per_s: float | None = None


def sentence(at: Standing) -> str:
    """One line about a run that is not shown to its end."""
    if at.paused:
        where = f"at round {at.shown:,}" if at.shown else "before the first round"
        return f"Paused {where}. {_models(at) or 'The models are working on the next one.'}"
    pace = "" if at.rounds_per_s is None else f", {_rate(at.rounds_per_s)}"
    running = f"Running: {at.tokens:,} of at most {at.budget:,} tokens{pace}"
    # Without a pace the models are never visibly ahead.
    ahead = _models(at) if pace else ""
    return f"{running}. {ahead}" if ahead else running


def _models(at: Standing) -> str:
    if at.finished:
        return f"The models have finished, at round {at.computed:,}."
    if at.full:
        return f"The models are ahead, at round {at.computed:,}, and wait there."
    return f"The models are ahead, at round {at.computed:,}." if at.computed > at.shown else ""


def _rate(rounds_per_s: float) -> str:
    return next((NAMES[choice] for choice, rate in RATES.items() if rate == rounds_per_s), f"{rounds_per_s:g} rounds/s")
