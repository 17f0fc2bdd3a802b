"""How each status of a token looks: one table for tree, text, legend and exports.

The colours are from the Okabe-Ito set, which can be told apart with the common colour-vision deficiencies. Colour is
never the only cue: every status has its own shape in the tree and its own underline in the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specviz.record.state import NodeStatus


@dataclass(frozen=True, slots=True)
class Look:
    """How one status is drawn.

    Attributes:
        meaning: of the status, for the legend and the welcome text.
        colour: as #rrggbb, readable on light and on dark.
        shape: vis-network's name of the node shape. glyph: the same shape as a character.
        outline: of the node and of the edge that leads to it.
        filled: whether the node's inside is coloured.
        underline: CSS line style under the token in the text; empty for a status that is never in the text.
    """

    meaning: str
    colour: str
    shape: Literal["dot", "square", "diamond", "star", "triangle", "triangleDown"]
    glyph: str
    outline: Literal["solid", "dashed", "dotted"] = "solid"
    filled: bool = True
    underline: Literal["", "solid", "double", "wavy", "dashed"] = ""


LOOKS: dict[NodeStatus, Look] = {
    "accepted": Look("drafted, and accepted by the target", "#009E73", "dot", "●", underline="solid"),
    "resampled": Look(
        "drawn from the target in place of a rejected draft", "#E69F00", "diamond", "◆", underline="double"
    ),
    "bonus": Look("extra token of a fully accepted round", "#3C8FD0", "star", "★", underline="wavy"),
    "rejected": Look("drafted, tested, and rejected", "#D5405E", "triangleDown", "▼", "dashed", filled=False),
    "ignored": Look("drafted after a rejected token, never tested", "#8A93A3", "square", "□", "dotted", filled=False),
    "pending": Look("drafted, not judged yet", "#8A93A3", "dot", "○", filled=False),
}

GOOD, MIDDLING, BAD, NEUTRAL = "#009E73", "#E6B800", "#D5405E", "#8A93A3"
#: Parts of a round's time, in the order in which they are stacked.
TIME_COLOURS: dict[str, str] = {
    "draft": "#56B4E9",
    "network": "#CC79A7",
    # In the queue of a busy server, and before a repeated call.
    "waiting": "#999933",
    "target": "#0072B2",
    # A call to a server that does not report how much of it was network and how much computing.
    "call": "#7E6BB5",
    "rule": "#E69F00",
    "other": "#8A93A3",
}


def css_variables() -> str:
    """The colours as CSS custom properties of a component's root: `--accepted`, `--draft`, and so on."""
    models = {name: TIME_COLOURS[name] for name in ("draft", "target")}
    colours = {status: look.colour for status, look in LOOKS.items()} | models
    return ":host{" + "".join(f"--{name}:{colour};" for name, colour in colours.items()) + "}"


def to_json() -> dict[str, dict[str, object]]:
    """The table for the browser's scripts."""
    return {
        status: {
            "meaning": look.meaning,
            "colour": look.colour,
            "shape": look.shape,
            "glyph": look.glyph,
            "dashes": {"solid": False, "dashed": [6, 4], "dotted": [2, 3]}[look.outline],
            "filled": look.filled,
        }
        for status, look in LOOKS.items()
    }
