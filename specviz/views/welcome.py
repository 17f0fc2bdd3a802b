"""The explanation of the colours, for a page on which nothing has run yet."""

from __future__ import annotations

from html import escape

from specviz.views.palette import LOOKS


def welcome_html() -> str:
    """A list of the statuses: glyph in its colour, name, meaning."""
    rows = "".join(
        f'<div style="display:flex;gap:10px;align-items:baseline">'
        f'<span style="color:{look.colour};font-size:17px;flex:0 0 1.5em;text-align:center">{escape(look.glyph)}</span>'
        f'<span><b>{escape(status)}</b> <span style="opacity:.75">{escape(look.meaning)}</span></span></div>'
        for status, look in LOOKS.items()
    )
    grid = "display:grid;grid-template-columns:repeat(auto-fit,minmax(min(290px,100%),1fr));gap:6px 24px"
    return f'<div style="{grid}">{rows}</div>'
