"""The token tree as vis-network nodes, in deltas.

x is the token's index in the output. The emitted text runs along one spine, y = 0; what a round dropped hangs below it,
in the first lane that no earlier dropped branch still occupies. Positions are computed here because vis-network's own
hierarchical layout takes seconds at two thousand nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pyvis.network import Network
from pyvis.node import Node as VisNode

from specviz.metrics import Node, NodeStatus, RunState
from specviz.views import words
from specviz.views.feed import Delta
from specviz.views.palette import LOOKS

#: What hangs below the spine.
DROPPED: frozenset[NodeStatus] = frozenset({"rejected", "ignored"})
COLUMN, LANE = 78, 60
_SMALLEST, _PER_BIT, _LARGEST = 7.0, 4.5, 22.0
_FAINTEST = 0.4


@dataclass(slots=True)
class TreeView:
    """A reader of one `RunState`; remembers lanes and counts, so that a delta costs what changed and not the tree.

    Attributes:
        counts: how many nodes have each status.
    """

    counts: Counter[NodeStatus] = field(default_factory=Counter)
    _read: int = 0
    _status: list[NodeStatus] = field(default_factory=list)
    _lane_of_round: dict[int, int] = field(default_factory=dict)
    _lane_ends: list[int] = field(default_factory=list)
    _drafted_to: dict[int, int] = field(default_factory=dict)

    def delta(self, state: RunState, run: str, base: int) -> Delta:
        """Nodes that changed after revision `base` of the change log, each once, as they are now."""
        self._catch_up(state)
        changed = dict.fromkeys(state.log[base:])
        items = [self._item(state.nodes[i]) for i in changed]
        return {"run": run, "from": base, "to": len(state.log), "items": items}

    def _catch_up(self, state: RunState) -> None:
        """Read the log on from where the last call left it: count, and give dropped branches their lanes."""
        news = [state.nodes[i] for i in state.log[self._read :]]
        self._read = len(state.log)
        # The log says which nodes changed; what they are is read as of now. So a round's ignored tokens may turn up
        # before its rejected one, and only the whole batch shows where the branch starts.
        branch_starts: dict[int, int] = {}
        for node in news:
            self._drafted_to[node.round] = max(self._drafted_to.get(node.round, 0), node.index)
            if node.status in DROPPED:
                branch_starts[node.round] = min(branch_starts.get(node.round, node.index), node.index)
            if node.id == len(self._status):
                self._status.append(node.status)
                self.counts[node.status] += 1
            elif (before := self._status[node.id]) != node.status:
                self._status[node.id] = node.status
                self.counts[before] -= 1
                self.counts[node.status] += 1
        for number, start in sorted(branch_starts.items()):
            if number not in self._lane_of_round:
                self._lane_of_round[number] = self._free_lane(start, self._drafted_to[number])

    def _free_lane(self, start: int, end: int) -> int:
        for lane, occupied_to in enumerate(self._lane_ends):
            if occupied_to < start:
                self._lane_ends[lane] = end
                return lane + 1
        self._lane_ends.append(end)
        return len(self._lane_ends)

    def _item(self, node: Node) -> dict[str, Any]:
        lane = self._lane_of_round[node.round] if node.status in DROPPED else 0
        vis = VisNode(
            node.id,
            LOOKS[node.status].shape,
            words.label(node.token),
            title=words.tooltip(node),
            size=node_size(node.entropy),
            opacity=opacity(node),
            x=node.index * COLUMN,
            y=lane * LANE,
        ).options
        return dict(vis) | {"parent": node.parent, "status": node.status}


def node_size(entropy: float | None) -> float:
    """Radius in pixels: grows with the entropy in bits, and is the smallest where that is not known."""
    return round(min(_LARGEST, _SMALLEST + _PER_BIT * math.sqrt(max(0.0, entropy or 0.0))), 1)


def opacity(node: Node) -> float:
    """From faint to full with the acceptance probability; full for tokens that were never up for acceptance."""
    if node.acceptance_prob is None:
        return 1.0
    return round(_FAINTEST + (1 - _FAINTEST) * min(1.0, max(0.0, node.acceptance_prob)), 2)


def network_options() -> dict[str, Any]:
    """Options of the one vis-network instance: everything that costs time is off."""
    network = Network()
    network.toggle_physics(False)
    return {
        "physics": {"enabled": bool(network.options.physics.enabled)},
        "layout": {"improvedLayout": False},
        "interaction": {"hover": True, "tooltipDelay": 80, "hideEdgesOnDrag": True, "selectConnectedEdges": False},
        "nodes": {"font": {"size": 13, "vadjust": -2}, "borderWidth": 2, "borderWidthSelected": 3},
        "edges": {"smooth": False, "width": 1.5, "hoverWidth": 0, "selectionWidth": 0, "chosen": False},
    }
