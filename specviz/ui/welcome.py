"""What the Live page shows before the first run: what a run does, and what the colours mean."""

from __future__ import annotations

import streamlit as st

from specviz.ui import page
from specviz.views.welcome import welcome_html


def show_welcome() -> None:
    """Say what Run does, and explain the colours."""
    with st.container(border=True):
        page.heading("Press Run to start a generation with speculative decoding", seen=True)
        st.markdown(
            "In each round a small draft model proposes K tokens. The target model scores all of them in one pass, and "
            "a rule accepts or rejects each. The page shows every decision, what it cost, and how exact the output is."
        )
        st.html(welcome_html())
