"""Keeps a run going while its visitor looks at another page than Live."""

from __future__ import annotations

import streamlit as st

from specviz.ui.session import Visit

_POLL_S = 2.0


def keep_alive(visit: Visit, caption: str) -> None:
    """Drain the visitor's run: a run that nobody drains is ended. When it has ended, the page is drawn again.

    Args:
        caption: shown until then.
    """
    run = visit.run
    if run is None:
        return
    run.drain()
    if run.done:
        return

    @st.fragment(run_every=_POLL_S)
    def drained() -> None:
        run.drain()
        if run.done:
            st.rerun()
        st.caption(caption)

    with st.container():
        drained()
