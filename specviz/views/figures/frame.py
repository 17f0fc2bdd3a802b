"""What all charts share: their form as data, title and axes, "n/a", and text that Plotly does not read as markup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specviz.views import words

#: Colours that the browser fills in from its theme.
TEXT, RED = "@text", "@red"
#: Charts over the rounds show this many of the last ones.
WINDOW = 60
#: Never fewer than this have room, so that the first bars are no walls.
_ROOM = 20
GRID = "rgba(138,147,163,0.25)"
_SMALL = {"size": 11}


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart.

    Attributes:
        data, layout: as Plotly takes them; `@text` and `@red` stand for colours of the theme.
        words: what it shows, for whoever does not see it.
    """

    data: list[dict[str, Any]]
    layout: dict[str, Any]
    words: str

    def to_json(self) -> dict[str, Any]:
        """As the browser gets it."""
        return {"data": self.data, "layout": self.layout, "words": self.words}


def plain(text: str, longest: int = 40) -> str:
    """A name that somebody else chose, in one line, so that Plotly shows it letter by letter.

    Plotly reads a little HTML and entities in every text, and fields in a hover template.
    """
    line = " ".join(words.visible(text).split())
    short = line if len(line) <= longest else line[: longest - 1] + "…"
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("{", "&#123;")):
        short = short.replace(char, entity)
    return short


def layout(
    title: str, subtitle: str, *, height: int, margin: tuple[int, int, int, int], colour: str = TEXT
) -> dict[str, Any]:
    """Title, a line below it in `colour`, and room: `margin` is left, right, top, bottom in pixels."""
    left, right, top, bottom = margin
    return {
        "title": {
            "text": title,
            "subtitle": {"text": subtitle, "font": {"size": 12, "color": colour}},
            "font": {"size": 14},
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "top",
            "yref": "container",
            "pad": {"t": 6, "l": 4},
        },
        "margin": {"l": left, "r": right, "t": top, "b": bottom},
        "height": height,
        "showlegend": False,
        "annotations": [],
    }


def axis(title: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """An axis that stays where it is when somebody drags in the chart."""
    named = {"title": {"text": title, "font": _SMALL, "standoff": 4}, "tickfont": _SMALL, "zeroline": False}
    return {**named, "gridcolor": GRID, "fixedrange": True, **(more or {})}


def over_rounds(numbers: list[int]) -> dict[str, Any]:
    """The axis of the rounds with these numbers, counted from 1."""
    first = numbers[0] if numbers else 1
    last = max(numbers[-1] if numbers else 1, first + _ROOM - 1)
    return axis("round", {"showgrid": False, "range": [first - 0.5, last + 0.5], "nticks": 6})


def legend(y: float) -> dict[str, Any]:
    """A legend in rows below the chart, in the order of the traces."""
    return {"orientation": "h", "x": 0, "y": y, "yanchor": "top", "font": _SMALL, "traceorder": "normal"}


def said(text: str, x: float | str, y: float | str, *, size: int = 11, anchor: str = "center") -> dict[str, Any]:
    """A short text at a place of the data."""
    at = {"x": x, "y": y, "showarrow": False, "xanchor": anchor, "yanchor": "middle"}
    return {**at, "text": text, "font": {"size": size}}


def say_not_known(drawn: dict[str, Any], why: str = "") -> None:
    """Put "n/a" in the middle of an otherwise empty chart, and why below the title."""
    middle = said(words.NOT_KNOWN, 0.5, 0.5, size=14)
    drawn["annotations"].append({**middle, "xref": "paper", "yref": "paper"})
    for name in ("xaxis", "yaxis"):
        drawn[name] = {"visible": False, "fixedrange": True}
    if why:
        drawn["title"]["subtitle"]["text"] = why
