"""Figures of two sides that were measured in turn."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

#: What is measured, by its name.
Sides = dict[str, Callable[[], float]]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and most."""
    return {
        "median": round(statistics.median(values), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
        "n": len(values),
    }


def in_turn(sides: Sides, repeats: int) -> dict[str, list[float]]:
    """Measure each side once per repeat, in an order that turns round each time. The first repeat is not counted."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for repeat in range(repeats + 1):
        for name in names:
            value = sides[name]()
            if repeat:
                found[name].append(value)
        names.reverse()
    return found


def against(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """The ratios of the pairs."""
    return spread([one / other for one, other in zip(ours, theirs, strict=True)])


def told(found: dict[str, list[float]], own: str) -> dict[str, Any]:
    """What every side has, and the ratio of `own` to each other one."""
    return {
        **{name: spread(values) for name, values in found.items()},
        **{f"{own} ÷ {name}": against(found[own], found[name]) for name in found if name != own},
    }
