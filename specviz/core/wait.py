"""A wait that somebody watches: a download, a load, a measurement, a server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a wait: a download, a conversion, a load, a baseline.

    Attributes:
        what: text for the user, such as "Downloading SmolLM2-135M-Instruct"; empty when the wait is over.
        done, total: in `unit`; total is None while it is unknown.
        unit: "bytes", "tokens", "steps" or "s".
    """

    what: str
    done: int = 0
    total: int | None = None
    unit: str = "steps"


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Wait:
    """Callbacks of whoever waits for a download, a server or a measurement: progress and cancellation.

    Attributes:
        on_progress: called often, with the progress. cancelled: called often; true ends the wait.
    """

    on_progress: OnProgress = lambda progress: None
    cancelled: Callable[[], bool] = lambda: False
