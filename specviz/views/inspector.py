"""All that is known about one decision, as data for the inspector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specviz.metrics import RunState
from specviz.views import words
from specviz.views.feed import Delta


def detail(state: RunState, node_id: int) -> dict[str, Any]:
    """What the inspector shows of one node."""
    node = state.nodes[node_id]
    return {"id": node.id, "round": node.round, "status": node.status, "facts": words.tooltip(node)}


@dataclass(slots=True)
class InspectorView:
    """Counts a revision for every change of what is shown, so that a poll without one costs nothing."""

    _rev: int = 0
    _run: str = ""
    _shown: dict[str, Any] | None = None

    def delta(self, state: RunState, run: str, base: int, selected: int | None) -> Delta:
        """The detail of the selected node, if the browser does not have it as it is now."""
        now = None if selected is None else detail(state, selected)
        if run != self._run:
            self._run, self._rev, self._shown = run, 0, None
        if now != self._shown:
            self._shown, self._rev = now, self._rev + 1
        items = [self._shown] if self._shown is not None and base < self._rev else []
        return {"run": run, "from": base, "to": self._rev, "items": items}
