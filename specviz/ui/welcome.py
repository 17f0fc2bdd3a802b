"""What a person sees before the first run: what will happen, and how to read the colours."""

from __future__ import annotations

import streamlit as st

from specviz.views.welcome import welcome_html


def show_welcome() -> None:
    """Invite to press Run and explain the colours."""
    with st.container(border=True):
        st.markdown("##### Press Run to watch a model being drafted for")
        st.markdown(
            "A small draft proposes K tokens. The target model scores all of them in one pass, and a rule keeps or "
            "refuses each. You see every decision, what it cost, and how far the text is still the target's own."
        )
        st.html(welcome_html())
