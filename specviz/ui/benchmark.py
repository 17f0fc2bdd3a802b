"""The Benchmark page: choose what to measure, see the results as they come, save and compare them."""

from __future__ import annotations

import streamlit as st

from specviz.ui import page, session
from specviz.ui.bench_controls import show_controls
from specviz.ui.bench_form import bench_form
from specviz.ui.bench_saved import show_saved
from specviz.ui.bench_view import show_bench
from specviz.ui.catalog import AppCatalog, Catalog
from specviz.ui.keep_alive import keep_alive
from specviz.ui.parts.libraries import load_plotly

_WELCOME = """\
**Which draft, which K?** This page measures it: every draft at every K on a suite of prompts, in random order, with
plain decoding measured in between. Each speed-up has a 95 % interval, and "do not speculate here" is a possible answer.
Choose at the left what to measure, and press **Measure**. Results are saved after each run: you can cancel at any time
and go on later.
"""


@page.says_errors
def show(catalog: Catalog | None = None) -> None:
    """Draw the page. `catalog` lists the models and makes their host."""
    catalog = catalog or AppCatalog()
    page.set_up("Benchmark")
    visit = session.visit()
    request = bench_form(catalog)
    with st.container():
        keep_alive(visit, "The run on the Live page goes on while you are here.")
    live = visit.bench is not None and visit.bench.live
    # Each in a container that always exists: elements after a growing one would be mounted again.
    with st.container():
        show_controls(catalog, visit, request)
    with st.container():
        if visit.bench is None and visit.opened is None:
            page.heading("About this page")
            st.info(_WELCOME, icon=":material/speed:")
        else:
            show_bench(visit)
    show_saved(catalog, visit)
    load_plotly()
    if live != (visit.bench is not None and visit.bench.live):
        # It ended while the page was drawn, and the buttons above still show it as running.
        st.rerun()
