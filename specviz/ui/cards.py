"""Cards with one number each: in one row, or in rows of two on a narrow page."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from specviz.views.summary import BadgeColour, Figure, Tone

#: How many fit in a row.
A_ROW = 4

STYLE = """<style>
.st-key-cards { container-type: inline-size; }
[class*="st-key-cards_"] { display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); }
[class*="st-key-cards_"] > * { width: auto; min-width: 0; }
[class*="st-key-cards_"] [data-testid="stMetric"] > div { padding: 0.5rem 0.9rem; }
[class*="st-key-cards_"] [data-testid="stMetricValue"] { font-size: 1.75rem; line-height: 1.35; }
[class*="st-key-cards_"] [data-testid="stMetricDelta"] * { white-space: normal; overflow: visible; }
@container (max-width: 700px) {
  [class*="st-key-cards_"] { grid-auto-flow: row; grid-template-columns: repeat(2, minmax(0, 1fr)); }
  [class*="st-key-cards_"] > :last-child:nth-child(odd) { grid-column: span 2; }
}
</style>"""

_TONES: dict[Tone, BadgeColour] = {"good": "green", "bad": "red", "neutral": "gray"}


def show_cards(rows: Sequence[Sequence[Figure]]) -> None:
    """Draw the rows, on a page that has `STYLE`. Once per page: the keys are fixed."""
    with st.container(key="cards", gap="small"):
        for number, row in enumerate(rows):
            _row(number, row)


def _row(number: int, cards: Sequence[Figure]) -> None:
    with st.container(horizontal=True, key=f"cards_{number}", gap="small"):
        for card in cards:
            st.metric(
                card.name, card.value, card.note or None, help=card.help, delta_arrow="off",
                delta_color=_TONES[card.tone], border=True, height="stretch",
            )  # fmt: skip
