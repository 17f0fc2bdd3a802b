"""A slider whose ends may change between page runs; a value beyond an end moves to the end."""

from __future__ import annotations

import streamlit as st


def bounded_slider(
    label: str, key: str, value: float, low: float, high: float, *, step: float, help: str, format: str = "%.3g"
) -> float:
    """Draw it; `value` is the first value. A value that the user has set stays for the session, within the ends."""
    if key not in st.session_state:
        first: float | None = min(max(value, low), high)
    else:
        # Streamlit refuses a value beyond the ends, and warns of a first value beside one in the state.
        first = None
        kept = st.session_state[key]
        if not low <= kept <= high:
            st.session_state[key] = min(max(kept, low), high)
    return float(
        st.slider(label, low, high, value=first, step=step, format=format, key=key, persist_state="session", help=help)
    )
