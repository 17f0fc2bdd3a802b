"""The charts of a run as deltas: only changed charts are sent, and they are computed only after a round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from specviz.record.state import RunState
from specviz.views import figures
from specviz.views.feed import Delta
from specviz.views.figures import Chart

#: Where charts are shown: beside the tree, or in a row below it.
Place = Literal["beside", "below"]
Draw = Callable[[RunState], Chart | None]

CHARTS: dict[Place, dict[str, Draw]] = {
    "beside": {
        "acceptance": figures.acceptance_gauge,
        "positions": figures.position_bars,
        "speed": figures.speed_bars,
        "latency": figures.latency_bars,
    },
    "below": {
        "rounds": figures.round_bars,
        "speed_by_round": figures.speed_lines,
        "billed": figures.billed_bars,
    },
}


@dataclass(slots=True)
class ChartsView:
    """The charts of one place. Counts a revision whenever a chart changes.

    Attributes:
        shown: names of the charts that the run has, in order.
    """

    place: Place
    shown: list[str] = field(default_factory=list)
    _run: str = ""
    _rev: int = 0
    _seen: tuple[int, bool, bool] | None = None
    _charts: dict[str, Chart] = field(default_factory=dict)
    _changed: dict[str, int] = field(default_factory=dict)

    def delta(self, state: RunState, run: str, base: int) -> Delta:
        """The charts that changed after revision `base`."""
        if run != self._run:
            self._run, self._rev, self._seen = run, 0, None
            self._charts.clear()
        self._catch_up(state)
        items: list[dict[str, Any]] = [
            {"name": name, "figure": self._charts[name].to_json()} for name in self.shown if self._changed[name] > base
        ]
        return {"run": run, "from": base, "to": self._rev, "items": items}

    def _catch_up(self, state: RunState) -> None:
        """Compute the charts again if a round has ended since the last call, or the run has begun or ended."""
        seen = (len(state.rounds), state.started is not None, state.finished)
        if seen == self._seen:
            return
        self._seen = seen
        drawn = {name: chart for name, draw in CHARTS[self.place].items() if (chart := draw(state)) is not None}
        changed = [name for name, chart in drawn.items() if chart != self._charts.get(name)]
        self._rev += bool(changed)
        self._changed.update(dict.fromkeys(changed, self._rev))
        self._charts, self.shown = drawn, list(drawn)
