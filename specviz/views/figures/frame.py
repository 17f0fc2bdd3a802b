"""What all charts share: their form as data, axes, legend, labels, and text that Plotly does not read as markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from specviz.views import words

#: Stands for the text colour of the theme; the browser fills it in.
TEXT = "@text"
#: Charts over rounds show this many of the last rounds.
WINDOW = 60
#: An axis of rounds has room for at least this many, so that the first bars are not too wide.
_ROOM = 20
NO_ROUND = "no round has ended yet"
GRID = "rgba(138,147,163,0.25)"
_SMALL = {"size": 11}


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart.

    Attributes:
        title: what it shows, with its unit. note: its main number; `bad`: whether that is bad news.
        words: its content for screen readers.
        data, layout: as Plotly takes them, without a title; `@text` stands for the theme's colour of text.
    """

    title: str
    note: str
    words: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    bad: bool = False

    def to_json(self) -> dict[str, Any]:
        """The chart as it is sent to the browser."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def plain(text: str, longest: int = 40) -> str:
    """A name from elsewhere in one line, escaped for Plotly.

    Plotly interprets some HTML and entities in every text, and fields in a hover template.
    """
    line = " ".join(words.visible(text).split())
    short = line if len(line) <= longest else line[: longest - 1] + "…"
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("{", "&#123;")):
        short = short.replace(char, entity)
    return short


def layout(height: int, margin: tuple[int, int, int, int]) -> dict[str, Any]:
    """An empty layout: `height` and the margins left, right, top and bottom are in pixels."""
    left, right, top, bottom = margin
    sides = {"l": left, "r": right, "t": top, "b": bottom}
    return {"margin": sides, "height": height, "showlegend": False, "annotations": []}


def axis(title: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """An axis that cannot be dragged or zoomed."""
    named = {"title": {"text": title, "font": _SMALL, "standoff": 4}, "tickfont": _SMALL, "zeroline": False}
    return {**named, "gridcolor": GRID, "fixedrange": True, **(more or {})}


def over_rounds(numbers: list[int]) -> dict[str, Any]:
    """An axis of rounds with these numbers, counted from 1."""
    first = numbers[0] if numbers else 1
    last = max(numbers[-1] if numbers else 1, first + _ROOM - 1)
    return axis("round", {"showgrid": False, "range": [first - 0.5, last + 0.5], "nticks": 6})


def legend(y: float) -> dict[str, Any]:
    """A legend in rows below the chart, in the order of the traces."""
    return {"orientation": "h", "x": 0, "y": y, "yanchor": "top", "font": _SMALL, "traceorder": "normal"}


def label(text: str, x: float | str, y: float | str, *, size: int = 11, anchor: str = "center") -> dict[str, Any]:
    """A short text at these coordinates of the data, as a Plotly annotation."""
    at = {"x": x, "y": y, "showarrow": False, "xanchor": anchor, "yanchor": "middle"}
    return {**at, "text": text, "font": {"size": size}}


def bars(rounds: list[int], counts: Sequence[int | None], name: str, colour: str, unit: str = "") -> dict[str, Any]:
    """Bars over rounds; the hover text ends with `name` and `unit`."""
    what = f"{name} {unit}".strip()
    return {
        "type": "bar",
        "x": rounds,
        "y": counts,
        "name": name,
        "marker": {"color": colour},
        "hovertemplate": f"round %{{x}}: %{{y:,}} {what}<extra></extra>",
    }


def line_at_one(axis: Literal["x", "y"]) -> dict[str, Any]:
    """A dotted line across the chart where this axis is 1, which is plain decoding."""
    other = "y" if axis == "x" else "x"
    ends = {f"{axis}0": 1, f"{axis}1": 1, f"{other}0": 0, f"{other}1": 1, f"{other}ref": "paper"}
    return {"type": "line", **ends, "line": {"color": TEXT, "width": 1, "dash": "dot"}}


def show_not_known(drawn: dict[str, Any]) -> None:
    """Show only "n/a" in a chart without data."""
    middle = label(words.NOT_KNOWN, 0.5, 0.5, size=14)
    drawn["annotations"] = [{**middle, "xref": "paper", "yref": "paper"}]
    drawn["showlegend"] = False
    for name in [key for key in drawn if key.endswith("axis") or key.endswith("axis2")]:
        drawn[name] = {"visible": False, "fixedrange": True}
