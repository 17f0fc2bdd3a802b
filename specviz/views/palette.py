"""How each fate of a token looks, everywhere: one table for tree, text, legend and exports.

The colours are from the Okabe-Ito set, which stays apart under the common colour-vision deficiencies. Colour is never
the only cue: every status has its own shape in the tree and its own underline in the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specviz.record.state import NodeStatus


@dataclass(frozen=True, slots=True)
class Look:
    """How one status is drawn.

    Attributes:
        meaning: what the status says, for the legend and for whoever sees the page for the first time.
        colour: as #rrggbb, readable on light and on dark.
        shape: vis-network's name of the node shape. glyph: the same shape as a character.
        outline: of the node and of the edge that leads to it.
        filled: whether the node's inside is coloured.
        underline: CSS line style under the token in the text; empty where the status never gets there.
    """

    meaning: str
    colour: str
    shape: Literal["dot", "square", "diamond", "star", "triangle", "triangleDown"]
    glyph: str
    outline: Literal["solid", "dashed", "dotted"] = "solid"
    filled: bool = True
    underline: Literal["", "solid", "double", "wavy", "dashed"] = ""


LOOKS: dict[NodeStatus, Look] = {
    "accepted": Look("drafted, and the target kept it", "#009E73", "dot", "●", underline="solid"),
    "resampled": Look(
        "drawn from the target in place of a rejected draft", "#E69F00", "diamond", "◆", underline="double"
    ),
    "bonus": Look("extra token of a fully accepted round", "#3C8FD0", "star", "★", underline="wavy"),
    "rejected": Look("drafted, tested, and refused", "#D5405E", "triangleDown", "▼", "dashed", filled=False),
    "ignored": Look("drafted behind a rejection, never tested", "#8A93A3", "square", "□", "dotted", filled=False),
    "pending": Look("drafted, not judged yet", "#8A93A3", "dot", "○", filled=False),
}

GOOD, MIDDLING, BAD, NEUTRAL = "#009E73", "#E6B800", "#D5405E", "#8A93A3"
#: Parts of a round's time, in the order in which they are stacked.
TIME_COLOURS: dict[str, str] = {
    "draft": "#56B4E9",
    "network": "#CC79A7",
    # For a server that is busy, and in front of a repeated call.
    "waiting": "#999933",
    "target": "#0072B2",
    # A call to a server that does not say what of it was network and what computing.
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
    """The table as the browser's scripts need it."""
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
