"""The Planner's inputs: round trip, draft speed, baseline, prices."""

from __future__ import annotations

from typing import cast, get_args

import streamlit as st

from specviz.bench.planning.inputs import Measured
from specviz.bench.planning.model import Against, Bill, Costs
from specviz.core.events import Way
from specviz.ui import page
from specviz.ui.sliders import bounded_slider
from specviz.views import words
from specviz.views.planner import draft_ceiling, rtt_ceiling
from specviz.views.planner.frame import baseline

PROMPT_TOKENS, OUTPUT_TOKENS = 100, 200
_WAYS: tuple[Way, ...] = ("scoring", "prefixes", "generating")


def ask_costs(measured: Measured, tag: str) -> tuple[Costs, Against]:
    """Draw the sliders. Each source has its own, with the measured values as first values."""
    page.heading("Round trip, draft and baseline")
    left, middle, right = st.columns(3, gap="medium")
    with left:
        rtt_ms = bounded_slider(
            "Round trip, ms", f"planner_rtt_{tag}", measured.rtt_ms, 0.0, rtt_ceiling(measured), step=1.0,
            format="%.4g", help="Every call to the target waits for it."
            + (" It is added to the network time in the measured calls." if measured.network_included else ""),
        )  # fmt: skip
    with middle:
        ceiling = draft_ceiling(measured)
        draft_ms = bounded_slider(
            "Draft, ms per token", f"planner_draft_{tag}", measured.draft_ms, 0.0, ceiling, step=ceiling / 500,
            help="The time of one drafted token. The first value is the measured one.",
        )  # fmt: skip
    with right:
        against = st.radio(
            "Compared with", get_args(Against), key="planner_against", persist_state="session", horizontal=True,
            format_func=lambda name: baseline(measured, cast(Against, name)),
            help="A streaming target waits for one round trip in all. One call per token waits for one round trip per "
            "token.",
        )  # fmt: skip
    return Costs(rtt_ms, draft_ms), cast(Against, against)


def ask_bill(measured: Measured, tag: str) -> tuple[Bill, Way]:
    """Draw the fields for prices and for the length of one answer."""
    first, second = st.columns(2), st.columns(3)
    with first[0]:
        prompt_price = _price("Price per million prompt tokens", "prompt_price")
    with first[1]:
        output_price = _price("Price per million output tokens", "output_price")
    with second[0]:
        prompt = _tokens("Prompt tokens", f"prompt_{tag}", measured.prompt_tokens or PROMPT_TOKENS, 0)
    with second[1]:
        output = _tokens("Output tokens", f"output_{tag}", measured.output_tokens or OUTPUT_TOKENS, 1)
    with second[2]:
        way = st.selectbox(
            "How the target verifies", _WAYS, index=_WAYS.index(measured.way) if measured.way else 0,
            key=f"planner_way_{tag}", persist_state="session", format_func=lambda name: words.WAYS[name],
        )  # fmt: skip
    return Bill(prompt_price, output_price, prompt, output), way


def _price(label: str, key: str) -> float | None:
    return st.number_input(
        label, min_value=0.0, max_value=1e6, value=None, step=0.1, format="%.4g", key=f"planner_{key}",
        persist_state="session", placeholder="not given", help="In any currency; the results are in the same one.",
    )  # fmt: skip


def _tokens(label: str, key: str, value: int, low: int) -> int:
    found = st.number_input(
        label, min_value=low, max_value=1_000_000, value=value, key=f"planner_{key}", persist_state="session",
        help="Of one answer.",
    )  # fmt: skip
    return int(found)
