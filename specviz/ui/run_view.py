"""The run itself: fragments, each at its own pace, that poll while there is something to come and no longer.

Until a run has begun only the line that says what it waits for is polled: the rest has nothing to show. While its
baseline is measured everything is polled all the same, or plain decoding would have the processor for itself, and the
run would be compared with what nobody who looks at it can have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import streamlit as st

from specviz.ui import phases
from specviz.ui.cards import A_ROW, STYLE, show_cards
from specviz.ui.session import Visit
from specviz.views import summary, words
from specviz.views.advice import advice

if TYPE_CHECKING:
    from specviz.host.run import Run

TREE_POLL_S, NUMBERS_POLL_S, CHARTS_POLL_S = 0.15, 0.5, 1.0
#: Below so many plain tokens per second, looking half as often is often enough: a round takes as long as that. What a
#: poll costs is taken from the models, where they compute on the same cores.
_SLOW_TPS = 15.0

Stage = Literal["waiting", "baseline", "going", "ended"]

#: Charts stand beside tree and text while there is room for both, and go below them where there is not. What is only
#: read out takes no room at all.
_STYLE = """<style>
.st-key-run_parts [data-testid="stColumn"] { flex: 7 1 0; min-width: min(26rem, 100%); }
.st-key-run_parts [data-testid="stColumn"] + [data-testid="stColumn"] { flex: 3 1 0; min-width: min(270px, 100%); }
[data-testid="stElementContainer"].st-key-status { position: absolute; width: 1px; height: 1px; overflow: hidden; }
</style>"""


def show_run(visit: Visit, run: Run) -> None:
    """Draw a run, and go on drawing while it lives."""
    visit.touch()
    run.drain()
    stage = _stage(run)
    slower = _slower(run)

    def polled(every_s: float, draw: Callable[[], None], *, from_start: bool = False) -> None:
        """Draw, and draw again while there is something new to see; `from_start`: also before the run has begun."""
        polls = stage in ("baseline", "going") or (stage == "waiting" and from_start)

        @st.fragment(run_every=every_s * slower if polls else None)
        def fragment() -> None:
            visit.touch()
            run.drain()
            # The whole page once more: that sets the polls of the new stage, or ends them.
            if _stage(run) != stage:
                st.rerun()
            draw()

        # Alone in its container: when a poll overtakes a page run, Streamlit drops the fragment's block, and what
        # stands behind it in the same container would move up, to where later messages do not look for it.
        with st.container():
            fragment()

    def standing() -> None:
        visit.view.announce(run)
        phases.show_header(run)
        phases.show_phase(run)
        if stage == "going":
            _cards(run)

    def tree_and_text() -> None:
        visit.view.show(run.state, run.id, "No text." if run.done else "The text appears here.")

    st.html(_STYLE + STYLE)
    polled(NUMBERS_POLL_S, standing, from_start=True)
    if stage == "ended" and not run.state.nodes:
        _what_was_sent(run)
        return
    # In a container that is always there: one element more above them, and tree, text and charts are mounted anew.
    with st.container():
        if stage != "going":
            _cards(run)
    with st.container(key="run_parts"):
        left, right = st.columns([7, 3], gap="medium")
    with left:
        polled(TREE_POLL_S, tree_and_text)
        st.caption(summary.green_limit(run.settings.k))
        _what_was_sent(run)
    with right:
        polled(CHARTS_POLL_S, lambda: visit.view.show_charts("beside", run.state, run.id))
    polled(CHARTS_POLL_S, lambda: visit.view.show_charts("below", run.state, run.id))


def _stage(run: Run) -> Stage:
    if run.done:
        return "ended"
    if run.state.started is None:
        return "baseline" if run.phase == "baseline" else "waiting"
    return "going"


def _slower(run: Run) -> int:
    """By how much longer the polls wait than they would for a fast target. Once stopped, the end is near.

    While the baseline is measured they wait as for a slow target: more polls than the run has would make plain decoding
    look slower, and the speed-up larger, than it is.
    """
    if run.state.started is None:
        return 2 if run.phase == "baseline" else 1
    plain = run.state.started.baseline_tps
    return 2 if plain is not None and plain < _SLOW_TPS and not run.stopped else 1


def _what_was_sent(run: Run) -> None:
    started = run.state.started
    if started is not None and started.prompt_text:
        with st.expander("What was sent"):
            st.caption(f"The prompt as the target got it: {len(started.prompt_ids):,} tokens.")
            st.code(words.exactly(started.prompt_text), language=None, wrap_lines=True)


def _cards(run: Run) -> None:
    cards = summary.numbers(run.state, run.settings)
    # Those that only a server has stand in a row of their own, with the speed-up.
    show_cards((cards,) if len(cards) <= A_ROW else (cards[: -A_ROW + 1], cards[-A_ROW + 1 :]))
    latest = run.state.latest
    if latest is not None and latest.note:
        st.caption(f"Last round: {words.escape_markdown(latest.note)}")
    for said in advice(run.state):
        st.caption(words.escape_markdown(said))
