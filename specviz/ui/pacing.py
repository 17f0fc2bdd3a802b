"""Beside Run and Stop: the pace of showing. A fragment of its own, so that a click redraws nothing else."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from specviz.ui import session
from specviz.ui.session import Visit
from specviz.views.pacing import NAMES, PaceName

_KEY = "pace"

#: A browser may send a click with the request of another fragment. Its callback then runs, but this fragment is not
#: drawn, and its buttons show the old state until the next poll.
_POLL_S = 1.0


def show_pacing(visit: Visit) -> None:
    """Draw the choice of a pace and, during a run, Pause or Resume and Step."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = visit.pacing

    @st.fragment(run_every=_POLL_S if visit.live else None)
    def pacing() -> None:
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="pacing"):
            st.selectbox(
                "Pace at which the run is shown", get_args(PaceName), format_func=_option, key=_KEY,
                persist_state="session", on_change=_choose, label_visibility="collapsed", width=170, filter_mode=None,
            )  # fmt: skip
            if visit.run is not None and visit.live:
                paused = visit.run.pace.paused
                st.button(
                    "Resume" if paused else "Pause", key="pause", on_click=_resume if paused else _pause,
                    icon=":material/resume:" if paused else ":material/pause:",
                    help="Pauses the display. The models go on, and the measured times stay the same.",
                )  # fmt: skip
                st.button(
                    "Step", key="step", icon=":material/skip_next:", on_click=_step, args=(visit.steps,),
                    help="Show one more round.",
                )  # fmt: skip

    pacing()


def _option(name: PaceName) -> str:
    # In the option: there is no room for a visible label.
    return f"Pace: {NAMES[name]}"


def _choose() -> None:
    session.visit().choose_pace(st.session_state[_KEY])


def _pause() -> None:
    visit = session.visit()
    if visit.run is not None and not visit.is_repeat():
        visit.run.pace.pause()


def _resume() -> None:
    visit = session.visit()
    if visit.is_repeat():
        return
    visit.resume()
    st.session_state[_KEY] = visit.pacing


def _step(press: int) -> None:
    session.visit().step(press)
