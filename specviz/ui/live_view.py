"""One run in one browser tab: what the tab has been sent, and the chosen token."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from specviz.record.state import RunState
from specviz.ui.parts import assets
from specviz.ui.parts.charts import key_of, show_charts
from specviz.ui.parts.inspector import show_inspector
from specviz.ui.parts.status import show_status
from specviz.ui.parts.text import show_text
from specviz.ui.parts.tree import show_tree
from specviz.views import text
from specviz.views.charts import CHARTS, ChartsView, Place
from specviz.views.feed import Cursor
from specviz.views.inspector import InspectorView
from specviz.views.phase import Announcer, announcement
from specviz.views.selection import Selection
from specviz.views.tree import TreeView

if TYPE_CHECKING:
    from specviz.host.run import Run

#: Components in which a token can be chosen.
_CHOOSERS = ("tree", "text", "inspector")


class LiveView:
    """Kept in the visit, beside the run.

    Attributes:
        selection: the chosen token, the same in tree, text and inspector.
    """

    def __init__(self) -> None:
        self.tree_view = TreeView()
        self.inspector_view = InspectorView()
        self.selection = Selection()
        self._announcer = Announcer()
        self._charts = {place: ChartsView(place) for place in CHARTS}
        self._cursors = {name: Cursor() for name in (*_CHOOSERS, *map(key_of, CHARTS))}

    def announce(self, run: Run) -> None:
        """Announce the state of the run to screen readers."""
        show_status(self._announcer.say(*announcement(run), time.monotonic()))

    def show(self, state: RunState, run: str, placeholder: str) -> None:
        """Send tree, text and inspector what the browser lacks; `placeholder` is shown where there is no text."""
        for name in _CHOOSERS:
            self.selection.take(run, assets.state_of(name).get("selected"))
        selected = self.selection.of(run, state)
        base = self._base("tree", run)
        tree = self.tree_view.delta(state, run, base)
        self._sent("tree", tree["to"])
        show_tree({**tree, "selected": selected, "counts": dict(self.tree_view.counts)})
        written = text.delta(state, run, self._base("text", run))
        self._sent("text", written["to"])
        show_text({**written, "selected": selected, "place": text.place(state, selected), "placeholder": placeholder})
        detail = self.inspector_view.delta(state, run, self._base("inspector", run), selected)
        self._sent("inspector", detail["to"])
        show_inspector({**detail, "selected": selected})

    def show_charts(self, place: Place, state: RunState, run: str) -> None:
        """Send the charts of one place that the browser lacks."""
        key, view = key_of(place), self._charts[place]
        delta = view.delta(state, run, self._base(key, run))
        self._sent(key, delta["to"])
        show_charts(place, {**delta, "shown": view.shown})

    def _base(self, name: str, run: str) -> int:
        return self._cursors[name].base(run, assets.need(name))

    def _sent(self, name: str, to: int) -> None:
        self._cursors[name].sent = to
