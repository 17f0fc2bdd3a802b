"""The token tree as rows of values, in deltas; the browser makes vis-network nodes of them.

A column is a token's index in the output. The emitted text is the spine, lane 0. The dropped tokens of a round lie
below it, in the first lane that no earlier branch occupies there. Positions are computed here because vis-network's
own hierarchical layout takes seconds at two thousand nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypedDict

from pyvis.network import Network

from specviz.record.state import EMITTED, Node, NodeStatus, RunState
from specviz.views import words
from specviz.views.palette import LOOKS

#: The statuses of tokens below the spine.
DROPPED: frozenset[NodeStatus] = frozenset({"rejected", "ignored"})

#: The fields of a row of `TreeDelta.items`, in this order: names would be two thirds of a message. `strength` is that
#: of the fill; None is "not known", and an infinite number is sent as text, since JSON has none.
NODE_FACTS = (
    "id", "parent", "round", "index", "lane", "status", "label", "token_id", "size", "strength", "entropy",
    "draft_logprob", "target_logprob", "acceptance_prob",
)  # fmt: skip
#: The fields of a row of `TreeDelta.rounds`: its tokens on the spine have the indices `from` … `to`.
ROUND_FACTS = ("round", "from", "to", "drafted", "accepted", "tested")

#: Tells the browser how to read the rows, and pixels per column and lane.
LAYOUT: dict[str, Any] = {"column": 78, "lane": 60, "node": NODE_FACTS, "round": ROUND_FACTS}

#: Characters of a label in the tooltip; the tree cuts it to its column.
_LONGEST = 40
_SMALLEST, _PER_BIT, _LARGEST = 7.0, 4.5, 22.0
_FAINTEST, _STRONGEST_REFUSED = 0.35, 0.5

#: A `feed.Delta` whose items are rows, with the present values of their rounds.
TreeDelta = TypedDict(
    "TreeDelta", {"run": str, "from": int, "to": int, "items": list[list[Any]], "rounds": list[list[int]]}
)


@dataclass(slots=True)
class _Round:
    """One round. `spine` counts its tokens in lane 0; `lane` is the lane of its dropped branch."""

    start: int
    drafted_to: int
    drafted: int = 0
    accepted: int = 0
    tested: int = 0
    spine: int = 0
    lane: int = 0

    def count(self, status: NodeStatus, by: int) -> None:
        self.accepted += by * (status == "accepted")
        self.tested += by * (status in ("accepted", "rejected"))
        self.spine += by * (status in EMITTED or status == "pending")


@dataclass(slots=True)
class TreeView:
    """A reader of one `RunState`. Keeps rounds and counts, so that a delta costs the changes and not the tree.

    Attributes:
        counts: how many nodes have each status.
    """

    counts: Counter[NodeStatus] = field(default_factory=Counter)
    _read: int = 0
    _status: list[NodeStatus] = field(default_factory=list)
    _rounds: dict[int, _Round] = field(default_factory=dict)
    _lane_ends: list[int] = field(default_factory=list)

    def delta(self, state: RunState, run: str, base: int) -> TreeDelta:
        """The present values of all nodes that changed after revision `base` of the change log, and of their rounds."""
        self._catch_up(state)
        changed = [state.nodes[i] for i in dict.fromkeys(state.log[base:])]
        return {
            "run": run,
            "from": base,
            "to": len(state.log),
            "items": [self._row(node) for node in changed],
            "rounds": [self._round_row(number) for number in dict.fromkeys(node.round for node in changed)],
        }

    def _catch_up(self, state: RunState) -> None:
        """Read the new entries of the log: count statuses, and give dropped branches their lanes."""
        news = [state.nodes[i] for i in dict.fromkeys(state.log[self._read :])]
        self._read = len(state.log)
        # The log names the nodes that changed, and their present values are read. So a round's ignored tokens may come
        # before its rejected one, and only the whole batch shows where the branch starts.
        branch_starts: dict[int, int] = {}
        for node in news:
            self._count(node)
            if node.status in DROPPED:
                branch_starts[node.round] = min(branch_starts.get(node.round, node.index), node.index)
        for number, start in sorted(branch_starts.items()):
            if not self._rounds[number].lane:
                self._rounds[number].lane = self._free_lane(start, self._rounds[number].drafted_to)

    def _count(self, node: Node) -> None:
        of = self._rounds.setdefault(node.round, _Round(node.index - node.position, node.index))
        of.drafted_to = max(of.drafted_to, node.index)
        if node.id == len(self._status):
            of.drafted += node.status not in ("resampled", "bonus")
            self._status.append(node.status)
        else:
            before = self._status[node.id]
            of.count(before, -1)
            self.counts[before] -= 1
            self._status[node.id] = node.status
        of.count(node.status, 1)
        self.counts[node.status] += 1

    def _free_lane(self, start: int, end: int) -> int:
        for lane, occupied_to in enumerate(self._lane_ends):
            if occupied_to < start:
                self._lane_ends[lane] = end
                return lane + 1
        self._lane_ends.append(end)
        return len(self._lane_ends)

    def _row(self, node: Node) -> list[Any]:
        return [
            node.id,
            node.parent,
            node.round,
            node.index,
            self._rounds[node.round].lane if node.status in DROPPED else 0,
            node.status,
            words.label(node.token, _LONGEST),
            node.token_id,
            node_size(node.entropy),
            strength(node),
            words.rounded(node.entropy, 2),
            words.rounded(node.draft_logprob, 3),
            words.rounded(node.target_logprob, 3),
            words.rounded(node.acceptance_prob, 3),
        ]

    def _round_row(self, number: int) -> list[int]:
        of = self._rounds[number]
        return [number, of.start, of.start + max(1, of.spine) - 1, of.drafted, of.accepted, of.tested]


def node_size(entropy: float | None) -> float:
    """Radius in pixels: grows with the entropy in bits, and is the smallest where that is not known."""
    return round(min(_LARGEST, _SMALLEST + _PER_BIT * math.sqrt(max(0.0, entropy or 0.0))), 1)


def strength(node: Node) -> float:
    """How strongly a node is filled, 0 to 1: more with the acceptance probability.

    A filled shape stays visibly filled, an empty one stays visibly empty, and a token without an acceptance
    probability is completely filled or empty.
    """
    filled = LOOKS[node.status].filled
    if node.acceptance_prob is None:
        return float(filled)
    share = min(1.0, max(0.0, node.acceptance_prob))
    return round(_FAINTEST + (1 - _FAINTEST) * share if filled else _STRONGEST_REFUSED * share, 2)


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
