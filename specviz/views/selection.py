"""The chosen token. Tree, text and inspector can each choose one; the newest choice counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specviz.record.state import RunState


@dataclass(slots=True)
class Selection:
    """The newest choice that a browser has reported.

    Attributes:
        run: the run of the node. id: of the node; None for no choice.
        at: time of the choice by the browser's clock, in ms: the same report may arrive with every poll.
    """

    run: str = ""
    id: int | None = None
    at: float = 0.0

    def take(self, run: str, report: Any) -> None:
        """Take the report of a component, {run, id, at}. A malformed or older one changes nothing."""
        if not isinstance(report, dict) or report.get("run") != run:
            return
        at, chosen = report.get("at"), report.get("id")
        if not isinstance(at, int | float) or at <= self.at:
            return
        if chosen is None or (isinstance(chosen, int) and not isinstance(chosen, bool)):
            self.run, self.id, self.at = run, chosen, at

    def of(self, run: str, state: RunState) -> int | None:
        """The chosen node of this run, None where there is none."""
        known = self.run == run and self.id is not None and 0 <= self.id < len(state.nodes)
        return self.id if known else None
