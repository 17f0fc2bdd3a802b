"""Which token is looked at. Tree, text and inspector can each choose one; the newest choice counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specviz.record.state import RunState


@dataclass(slots=True)
class Selection:
    """The newest choice that a browser has reported.

    Attributes:
        run: whose node it is. id: of the node; None for "none".
        at: when it was made, by the browser's clock, in ms: one report may arrive with every poll.
    """

    run: str = ""
    id: int | None = None
    at: float = 0.0

    def take(self, run: str, report: Any) -> None:
        """Take in what a component reports: {run, id, at}. Anything else, or an older one, changes nothing."""
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
