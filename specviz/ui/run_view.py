"""The run: fragments that poll, each at its own interval, until the run has ended.

Before a run has begun only the line with its state is polled: the rest has nothing to show. While the baseline is
measured everything is polled. Otherwise plain decoding would have the processor for itself, and the baseline would be
faster than it can be beside this page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import streamlit as st

from specviz.ui import page, phases
from specviz.ui.cards import A_ROW, STYLE, show_cards
from specviz.ui.session import Visit
from specviz.views import summary, words
from specviz.views.advice import advice

if TYPE_CHECKING:
    from specviz.host.run import Run

TREE_POLL_S, NUMBERS_POLL_S, CHARTS_POLL_S = 0.15, 0.5, 1.0
#: Below this many plain tokens per second the page polls half as often, because rounds take that long. Polls take time
#: from models that compute on the same cores.
_SLOW_TPS = 15.0

Stage = Literal["waiting", "baseline", "going", "ended"]

#: Charts are beside tree and text where there is room for both, and below them where there is not.
_STYLE = """<style>
.st-key-run_parts [data-testid="stColumn"] { flex: 7 1 0; min-width: min(26rem, 100%); }
.st-key-run_parts [data-testid="stColumn"] + [data-testid="stColumn"] { flex: 3 1 0; min-width: min(270px, 100%); }
</style>"""


def show_run(visit: Visit, run: Run) -> None:
    """Draw a run, and draw it again until it has ended."""
    run.drain()
    stage = _stage(run)
    slower = _slower(run)

    def polled(every_s: float, draw: Callable[[], None], *, from_start: bool = False) -> None:
        """Draw, and draw again until the run has ended; `from_start`: also before it has begun."""
        polls = stage in ("baseline", "going") or (stage == "waiting" and from_start)

        @st.fragment(run_every=every_s * slower if polls else None)
        def fragment() -> None:
            run.drain()
            # Runs the whole page once more, which sets the polls of the new stage or ends them.
            if _stage(run) != stage:
                st.rerun()
            draw()

        # Alone in its container: when a poll overtakes a page run, Streamlit drops the fragment's block, and elements
        # after it in the same container would move up, where later messages do not find them.
        with st.container():
            fragment()

    def status() -> None:
        visit.view.announce(run)
        phases.show_header(run)
        phases.show_phase(run)
        if stage == "going":
            _cards(run)

    def tree_and_text() -> None:
        visit.view.show(run.state, run.id, "No text." if run.done else "The text appears here.")

    st.html(_STYLE + STYLE)
    page.heading("Run")
    polled(NUMBERS_POLL_S, status, from_start=True)
    if stage == "ended" and not run.state.nodes:
        _sent_prompt(run)
        return
    # In a container that always exists: one more element above tree, text and charts would mount them again.
    with st.container():
        if stage != "going":
            _cards(run)
    with st.container(key="run_parts"):
        left, right = st.columns([7, 3], gap="medium")
    with left:
        polled(TREE_POLL_S, tree_and_text)
        st.caption(summary.green_limit(run.settings.k))
        _sent_prompt(run)
    with right:
        page.heading("Charts")
        polled(CHARTS_POLL_S, lambda: visit.view.show_charts("beside", run.state, run.id))
    polled(CHARTS_POLL_S, lambda: visit.view.show_charts("below", run.state, run.id))


def _stage(run: Run) -> Stage:
    if run.done:
        return "ended"
    if run.state.started is None:
        return "baseline" if run.phase == "baseline" else "waiting"
    return "going"


def _slower(run: Run) -> int:
    """The factor for the poll intervals: 2 for a slow target, 1 for a fast one and after Stop.

    While the baseline is measured it is 2: more polls than during the run would make plain decoding slower, and the
    speed-up larger.
    """
    if run.state.started is None:
        return 2 if run.phase == "baseline" else 1
    plain = run.state.started.baseline_tps
    return 2 if plain is not None and plain < _SLOW_TPS and not run.stopped else 1


def _sent_prompt(run: Run) -> None:
    started = run.state.started
    if started is not None and started.prompt_text:
        with st.expander("What was sent"):
            st.caption(f"The prompt as it was sent to the target: {len(started.prompt_ids):,} tokens.")
            st.code(words.exactly(started.prompt_text), language=None, wrap_lines=True)


def _cards(run: Run) -> None:
    cards = summary.numbers(run.state, run.settings)
    # The cards that only a server has are in a row of their own, with the speed-up.
    show_cards((cards,) if len(cards) <= A_ROW else (cards[: -A_ROW + 1], cards[-A_ROW + 1 :]))
    latest = run.state.latest
    if latest is not None and latest.note:
        st.caption(f"Last round: {words.escape_markdown(latest.note)}")
    for sentence in advice(run.state):
        st.caption(words.escape_markdown(sentence))
