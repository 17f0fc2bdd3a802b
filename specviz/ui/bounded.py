"""A slider whose ends follow what is planned from: a value that is beyond them now moves to the end."""

from __future__ import annotations

import streamlit as st


def bounded_slider(
    label: str, key: str, value: float, low: float, high: float, *, step: float, help: str, format: str = "%.3g"
) -> float:
    """Draw it; `value` is where it begins. What it was moved to stays for the session, as far as the ends allow."""
    if key not in st.session_state:
        first: float | None = min(max(value, low), high)
    else:
        # Streamlit refuses a value beyond the ends, and complains of a first value beside one in the state.
        first = None
        kept = st.session_state[key]
        if not low <= kept <= high:
            st.session_state[key] = min(max(kept, low), high)
    return float(
        st.slider(label, low, high, value=first, step=step, format=format, key=key, persist_state="session", help=help)
    )
