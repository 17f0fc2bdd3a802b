"""What the planner's charts share: the K that they show, colours, and the mark for extrapolated K."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specviz.bench.planning.inputs import Measured
from specviz.bench.planning.model import Against
from specviz.core.settings import K_MAX
from specviz.views.figures.frame import label

KS: tuple[int, ...] = tuple(range(1, K_MAX + 1))
#: Dark enough to be read on every colour of a map, in both themes.
INK = "#1B2430"
MEASURED, IID, COST = "#0072B2", "#CC79A7", "#E69F00"


def baseline(measured: Measured, against: Against) -> str:
    """The name of the baseline."""
    if against == "one call per token":
        return against
    return "streaming" if measured.network_included else "plain decoding"


def k_axis(ks: Sequence[int]) -> dict[str, Any]:
    """The settings of an axis of K."""
    return {"showgrid": False, "tickvals": list(ks), "range": [ks[0] - 0.5, ks[-1] + 0.5]}


def mark_extrapolated(drawn: dict[str, Any], measured: Measured, ks: Sequence[int], colour: str) -> None:
    """A dashed line after the last measured K, and a label on the side that has room for it."""
    if not measured.is_extrapolated(ks[-1]):
        return
    at = measured.k + 0.5
    line = {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper"}
    drawn.setdefault("shapes", []).append({**line, "line": {"color": colour, "width": 1.5, "dash": "dash"}})
    right = at > (ks[0] + ks[-1]) / 2
    word = label("extrapolated →", at, 1, size=10, anchor="right" if right else "left")
    drawn["annotations"].append({**word, "yref": "paper", "yanchor": "bottom"})
