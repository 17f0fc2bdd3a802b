"""The Planner's sidebar: the source of its numbers. A run of the Live page, a saved file, or assumptions."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from specviz.bench.planning.inputs import Measured, by_hand, from_run
from specviz.bench.planning.sources import read
from specviz.core.errors import SpecvizError
from specviz.store import workspace
from specviz.ui import page
from specviz.ui.bench_saved import saved_files, title_of
from specviz.ui.session import Visit
from specviz.ui.sliders import bounded_slider
from specviz.views import words
from specviz.views.planner.sentences import run_lacks

Source = Literal["run", "file", "hand"]

_NAMES: dict[Source, str] = {
    "run": "Last run on the Live page",
    "file": "Saved benchmark or prediction",
    "hand": "By hand",
}
#: SmolLM2-135M on two CPU cores, with MLX in float32 and OpenBLAS: ms of a plain token, and passes over 5 and 17 tokens
#: as multiples of it. α and the draft speed are typical values.
PLAIN_MS, OF_5, OF_17, ALPHA, DRAFT_MS = 89.0, 1.43, 2.02, 0.6, 5.0
_FIRST_VALUES = (
    "First values: SmolLM2-135M on two CPU cores (MLX, float32, OpenBLAS): a token takes 89 ms, 5 in one pass 127 ms, "
    "9 take 146 ms, 17 take 180 ms. Acceptance and draft speed are a guess to start from."
)


def choose_source(visit: Visit) -> tuple[Measured | None, str]:
    """Draw the choice; returns the measurement, None where the chosen source has none, and the tag of the source.

    Each tag has sliders of its own, with first values from its source.
    """
    run = from_run(visit.run.state) if visit.run else None
    # Until the user has chosen a source, a run is the source as soon as there is one.
    if not st.session_state.get("planner_chose"):
        st.session_state["planner_source"] = "run" if run else "hand"
    with st.sidebar:
        page.heading("Source of the numbers")
        source: Source = st.radio(
            "Plan from", list(_NAMES), key="planner_source", persist_state="session",
            format_func=lambda name: _NAMES[name], on_change=_chose,
        )  # fmt: skip
        if source == "file":
            return _from_file()
        if source == "hand":
            return _by_hand(), "hand"
        if visit.run is None:
            st.caption("There is no run yet: press Run on the Live page first.")
        elif run is None:
            st.caption(words.escape_markdown(run_lacks(visit.run.state)))
        # At the end of the run the sliders start again, at the values of the whole run.
        return run, f"run_{visit.run.id}_{visit.run.done}" if visit.run else ""


def _chose() -> None:
    st.session_state["planner_chose"] = True


def _by_hand() -> Measured:
    st.caption(words.escape_markdown(_FIRST_VALUES))
    alpha = _slider("Acceptance α", "alpha", ALPHA, 0.0, 1.0, 0.01, "Accepted / tested, the same at every position.")
    plain = _slider("Plain decoding, ms per token", "plain", PLAIN_MS, 1.0, 500.0, 1.0, "The target on its own.")
    of_5 = _slider(
        "Verifying K = 4 takes, in plain tokens", "of_5", OF_5, 1.0, 5.0, 0.01,
        "One pass over 5 tokens. 1: no extra cost, as memory-bound hardware nearly has. 5: nothing is saved.",
    )  # fmt: skip
    of_17 = _slider(
        "Verifying K = 16 takes, in plain tokens", "of_17", max(OF_17, of_5), of_5, 17.0, 0.01,
        "One pass over 17 tokens; at least the value for K = 4.",
    )  # fmt: skip
    return by_hand(alpha, plain, DRAFT_MS, [(4, plain * of_5), (16, plain * of_17)])


def _from_file() -> tuple[Measured | None, str]:
    """A saved or uploaded benchmark. It stays until another one is chosen, also on other pages."""
    files = saved_files(workspace.benchmark_folder())
    name = st.selectbox(
        "Measured on this machine", list(files), index=None, key="planner_saved",
        placeholder="choose one, or upload a file",
        format_func=lambda n: title_of(files[n]) if n in files else n,
    )  # fmt: skip
    uploaded = st.file_uploader(
        "Benchmark or prediction, as JSON", type=["json"], key="planner_file", help=_HOW_TO_SAVE
    )
    if uploaded is not None:
        _take(uploaded.file_id, uploaded.getvalue())
    elif name in files:
        try:
            _take(f"{name}_{files[name].stat().st_mtime_ns}", files[name].read_bytes())
        except OSError as exc:
            page.show_error(words.escape_markdown(f"Cannot read {name}: {exc.strerror or exc}."))
    complaint, rows = st.session_state.get("planner_read", ("", []))
    if complaint:
        page.show_error(complaint)
    if not rows:
        return None, ""
    at = st.selectbox(
        "Draft, rule, temperature", range(len(rows)), key="planner_row", persist_state="session",
        format_func=lambda i: words.visible(words.cut(rows[i].source)) if i < len(rows) else "",
    )  # fmt: skip
    at = at if at is not None and at < len(rows) else 0
    return rows[at], f"file_{st.session_state.get('planner_given')}_{at}"


def _take(tag: str, data: bytes) -> None:
    """Read the file, unless it was read already."""
    if st.session_state.get("planner_given") != tag:
        st.session_state["planner_given"] = tag
        st.session_state["planner_read"] = _read(data)


_HOW_TO_SAVE = "A file written by `python -m specviz bench` or `predict`, or saved by the Benchmark page."


def _read(data: bytes) -> tuple[str, list[Measured]]:
    """An error as Markdown, empty for none, and the measurements in the file."""
    try:
        return "", read(data)
    except SpecvizError as error:
        return words.complaint(error), []


def _slider(label: str, key: str, value: float, low: float, high: float, step: float, help: str) -> float:
    return bounded_slider(label, f"planner_{key}", value, low, high, step=step, help=help)
