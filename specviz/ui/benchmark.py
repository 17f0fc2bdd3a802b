"""The Benchmark page: choose what to measure, watch the table fill, keep and compare what was measured."""

from __future__ import annotations

import streamlit as st

from specviz.ui import page, session
from specviz.ui.bench_controls import show_controls
from specviz.ui.bench_form import bench_form
from specviz.ui.bench_saved import show_saved
from specviz.ui.bench_view import show_bench
from specviz.ui.catalog import AppCatalog, Catalog
from specviz.ui.parts.libraries import load_plotly

_WELCOME = """\
**Which draft, which K?** This page measures it: every draft at every K on a suite of prompts, in random order, with
plain decoding measured in between. Each speed-up comes with the interval in which it lies, and "do not speculate here"
is a possible answer. Choose at the left what to measure, and press **Measure**. What is measured is saved as it comes:
cancel at any time, and go on later.
"""


def show(catalog: Catalog | None = None) -> None:
    """Draw the page. `catalog` says which models there are and makes their host."""
    catalog = catalog or AppCatalog()
    page.set_up("Benchmark")
    visit = session.visit()
    asked = bench_form(catalog)
    live = visit.bench is not None and visit.bench.live
    # Each in a container that is always there: what stands behind one that grows would be mounted anew.
    with st.container():
        show_controls(catalog, visit, asked)
    with st.container():
        if visit.bench is None and visit.opened is None:
            st.info(_WELCOME, icon=":material/speed:")
        else:
            show_bench(visit)
    show_saved(catalog, visit)
    load_plotly()
    if live != (visit.bench is not None and visit.bench.live):
        # It ended while the page was drawn: the buttons above stand for one that is still measured.
        st.rerun()
