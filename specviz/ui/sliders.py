"""Sliders: with steps as fine as the default needs, and with ends that may change between page runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import streamlit as st


def bounded_slider(
    label: str, key: str, value: float, low: float, high: float, *, step: float, help: str, format: str = "%.3g"
) -> float:
    """A slider whose ends may change. The chosen value stays for the session, and moves to an end that it exceeds."""
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


def fine_slider(
    label: str, key: str, value: float, low: float, high: float, steps: Sequence[float], help: str,
    *, disabled: bool = False,
) -> float:  # fmt: skip
    """A slider with the first of `steps` that divides `value`, the default; the default may widen the ends."""
    step = next((s for s in steps if math.isclose(value / s, round(value / s))), steps[-1])
    low, high = min(low, value), max(high, value)
    return float(
        st.slider(
            label, low, high, step=step, value=float(value), format="%.4g", key=key, persist_state="session",
            disabled=disabled, help=help,
        )
    )  # fmt: skip
