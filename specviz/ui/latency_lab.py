"""The sidebar's latency lab: a simulated network in front of a target in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from specviz.core.names import parse_target
from specviz.core.settings import Settings
from specviz.ui.sliders import fine_slider
from specviz.views import latency_lab, words

RTT_MAX_MS, JITTER_MAX_MS = 500.0, 200.0
_RTT, _JITTER = "simulated_rtt_ms", "simulated_jitter_ms"
_STEPS = (10.0, 1.0, 0.1, 0.01)


def show_latency_lab(defaults: Settings, k: int, draft: str) -> dict[str, Any]:
    """Draw it; returns field name → value.

    Args:
        k, draft: the present choice, for the text on what to expect.
    """
    with st.expander("Latency lab"):
        st.caption(words.escape_markdown(latency_lab.ABOUT))
        rtt_ms = fine_slider(
            "Round trip, ms", _RTT, defaults.simulated_rtt_ms, 0.0, RTT_MAX_MS, _STEPS,
            help="Every call to the target waits this long. 0: no network.",
        )  # fmt: skip
        jitter_ms = fine_slider(
            "Jitter, ± ms", _JITTER, defaults.simulated_jitter_ms, 0.0, JITTER_MAX_MS, _STEPS, disabled=not rtt_ms,
            help="Each round trip is drawn uniformly from the range round trip ± jitter. Equal seeds give equal "
            "delays.",
        )  # fmt: skip
        if limit := latency_lab.clipped(rtt_ms, jitter_ms):
            st.caption(words.escape_markdown(limit))
        if rtt_ms:
            st.caption(words.escape_markdown(latency_lab.expected(k, draft == "none")))
    return _possible(rtt_ms, jitter_ms)


def as_possible(fields: Mapping[str, Any], target: str) -> dict[str, Any]:
    """The network settings of these fields: none in front of a server, and no more jitter than round trip."""
    if _RTT not in fields:
        return {}
    return _possible(0.0, 0.0) if parse_target(target).place != "here" else _possible(fields[_RTT], fields[_JITTER])


def _possible(rtt_ms: float, jitter_ms: float) -> dict[str, Any]:
    return {_RTT: float(rtt_ms), _JITTER: float(min(jitter_ms, rtt_ms))}
