"""The run itself: three fragments, each at its own pace, that stop polling when the run has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from specviz.ui import phases
from specviz.ui.session import Visit
from specviz.views import summary, words
from specviz.views.advice import advice
from specviz.views.summary import BadgeColour, Tone

if TYPE_CHECKING:
    from specviz.run import Run

TREE_POLL_S, NUMBERS_POLL_S, CHARTS_POLL_S = 0.2, 0.5, 1.0

#: As many cards as fit beside each other.
_A_ROW = 4

#: Charts stand beside tree and text while there is room for both, and go below them where there is not.
_SIDE_BY_SIDE = """<style>
.st-key-run_parts [data-testid="stColumn"] { flex: 7 1 0; min-width: min(26rem, 100%); }
.st-key-run_parts [data-testid="stColumn"] + [data-testid="stColumn"] { flex: 3 1 0; min-width: min(270px, 100%); }
</style>"""

_TONES: dict[Tone, BadgeColour] = {"good": "green", "bad": "red", "neutral": "gray"}


def show_run(visit: Visit, run: Run) -> None:
    """Draw a run, and go on drawing while it lives."""
    live = not run.done

    @st.fragment(run_every=NUMBERS_POLL_S if live else None)
    def numbers() -> None:
        _take_in(visit, run, polling=live)
        phases.show_header(run)
        phases.show_phase(run)
        if live or run.state.nodes:
            _cards(run)

    @st.fragment(run_every=TREE_POLL_S if live else None)
    def tree_and_text() -> None:
        _take_in(visit, run, polling=live)
        visit.view.show(run.state, run.id, "No text." if run.done else "The text appears here.")

    @st.fragment(run_every=CHARTS_POLL_S if live else None)
    def charts() -> None:
        _take_in(visit, run, polling=live)
        visit.view.show_charts("beside", run.state, run.id)

    @st.fragment(run_every=CHARTS_POLL_S if live else None)
    def more_charts() -> None:
        _take_in(visit, run, polling=live)
        visit.view.show_charts("below", run.state, run.id)

    @st.fragment(run_every=CHARTS_POLL_S if live else None)
    def sent() -> None:
        started = run.state.started
        if started is not None and started.prompt_text:
            with st.expander("What was sent"):
                st.caption(f"The prompt as the target got it: {len(started.prompt_ids):,} tokens.")
                st.code(words.exactly(started.prompt_text), language=None, wrap_lines=True)

    numbers()
    if not live and not run.state.nodes:
        sent()
        return
    st.html(_SIDE_BY_SIDE)
    with st.container(key="run_parts"):
        left, right = st.columns([7, 3], gap="medium")
    with left:
        tree_and_text()
        st.caption(summary.green_limit(run.settings.k))
        sent()
    with right:
        charts()
    more_charts()


def _take_in(visit: Visit, run: Run, *, polling: bool) -> None:
    """Take in what has come. When the run has ended, run the whole page once more: that ends the polling."""
    visit.touch()
    run.drain()
    if polling and run.done:
        st.rerun()


def _cards(run: Run) -> None:
    cards = summary.numbers(run.state, run.settings)
    # Those that only a server has stand in a row of their own, with the speed-up.
    for row in (cards,) if len(cards) <= _A_ROW else (cards[: -_A_ROW + 1], cards[-_A_ROW + 1 :]):
        with st.container(horizontal=True):
            for card in row:
                st.metric(
                    card.name, card.value, card.note or None, help=card.help, delta_arrow="off",
                    delta_color=_TONES[card.tone], border=True, height="stretch",
                )  # fmt: skip
    latest = run.state.latest
    if latest is not None and latest.note:
        st.caption(f"Last round: {words.escape_markdown(latest.note)}")
    for said in advice(run.state):
        st.caption(words.escape_markdown(said))
