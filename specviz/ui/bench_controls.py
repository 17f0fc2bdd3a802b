"""Above the results: Measure, Pause, Cancel, and the number of runs."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import streamlit as st

from specviz.bench.sweep.results import Bench
from specviz.bench.sweep.sweep import new_bench
from specviz.ui import page, session
from specviz.ui.bench_form import BenchRequest, show_complaint
from specviz.ui.catalog import Catalog
from specviz.ui.session import Visit


def show_controls(catalog: Catalog, visit: Visit, request: BenchRequest) -> None:
    """Draw them, and start the benchmark when Measure is pressed."""
    page.heading("Measure")
    job = visit.bench
    live = job is not None and job.live
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.button(
            "Measure", type="primary", icon=":material/play_arrow:",
            disabled=live or request.plan is None or request.suite is None, on_click=_start, args=(catalog, request),
        )  # fmt: skip
        if live and job is not None and job.paused:
            st.button("Resume", icon=":material/resume:", on_click=_hold, args=(False,))
        else:
            st.button("Pause", icon=":material/pause:", disabled=not live, on_click=_hold, args=(True,))
        st.button("Cancel", icon=":material/stop:", disabled=not live, on_click=_cancel, help="Finished runs are kept.")
        if request.plan and request.suite and not live:
            st.caption(_how_much(request))
    show_complaint(request)
    if refusal := visit.refusal({"bench": repr(request.plan)}, of="bench"):
        page.show_error(refusal)


def _how_much(request: BenchRequest) -> str:
    assert request.plan and request.suite
    cells, prompts = len(request.plan.cells()), len(request.suite.prompts)
    times = f" × {request.plan.repeats} repeats" if request.plan.repeats > 1 else ""
    runs = cells * prompts * request.plan.repeats
    return f"{cells} cells, plain decoding among them, × {prompts} prompts{times} = {runs:,} runs"


def new_path(folder: Path) -> Path:
    """A unique file name with the time."""
    return folder / time.strftime(f"bench-%Y%m%d-%H%M%S-{uuid.uuid4().hex[:4]}.json")


def start(catalog: Catalog, bench: Bench, path: Path) -> None:
    """Start a benchmark, or go on with a saved one.

    Raises:
        SpecvizError: a model does not exist, or the host was closed.
    """
    visit = session.visit()
    for draft in bench.plan.drafts:
        # An unknown draft is refused at once, with its name, and not after the runs of the others.
        cell = next((c for c in bench.plan.cells() if c.draft == draft), bench.plan.cells()[0])
        catalog.check(bench.plan.settings_of(cell))
    visit.start_bench(session.host(catalog), bench, path)
    session.put_into_address(visit)


def _start(catalog: Catalog, request: BenchRequest) -> None:
    visit = session.visit()
    if request.plan is None or request.suite is None or (visit.bench is not None and visit.bench.live):
        return
    with visit.refusing(lambda: {"bench": repr(request.plan)}, of="bench"):
        start(catalog, new_bench(request.plan, request.suite.prompts), new_path(catalog.benchmark_folder()))


def _hold(pause: bool) -> None:
    job = session.visit().bench
    if job is not None:
        (job.pause if pause else job.resume)()


def _cancel() -> None:
    session.visit().stop_bench()
