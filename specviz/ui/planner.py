"""The Planner page: whether to speculate, with which K, and at which round trip or draft speed that changes."""

from __future__ import annotations

import streamlit as st

from specviz.bench.planning.inputs import Measured
from specviz.bench.planning.model import Against, Costs, PlannerResult, answer
from specviz.ui import cards, page, session
from specviz.ui.keep_alive import keep_alive
from specviz.ui.parts.charts import show_row
from specviz.ui.parts.libraries import load_plotly
from specviz.ui.planner_costs import ask_bill, ask_costs
from specviz.ui.planner_source import choose_source
from specviz.views import planner, words
from specviz.views.planner import sentences
from specviz.views.planner.frame import KS, baseline
from specviz.views.planner.numbers import bill_cards, main_cards, table

_NO_MEASUREMENT = (
    "These numbers are assumptions. For measured ones, **run a prompt on the Live page** and come back: the run's "
    "acceptance, draft and verification times are used here. A saved benchmark of several drafts and K can be loaded "
    "at the left."
)


@page.says_errors
def show() -> None:
    """Draw the page."""
    page.set_up("Planner")
    st.html(cards.STYLE)
    visit = session.visit()
    keep_alive(visit, "The run is still going: these are its numbers so far.")
    measured, tag = choose_source(visit)
    page.heading("Answer")
    if measured is None:
        st.info("There are no measurements yet: choose another source at the left, or enter values by hand.")
        return
    above = st.container()
    costs, against = ask_costs(measured, tag)
    found = answer(measured, costs, KS, against)
    with above:
        _verdict(measured, found, costs, against)
    page.heading("Charts")
    _charts(measured, costs, against)
    st.caption(words.escape_markdown(sentences.where_iid_fails(measured)))
    page.heading("What the target bills")
    with st.expander("What the target bills"):
        bill, way = ask_bill(measured, tag)
        for line in bill_cards(measured, found.k, bill, way):
            st.markdown(f"**{line.name}: {words.escape_markdown(line.value)}.** {words.escape_markdown(line.note)}")
    page.heading("All numbers")
    with st.expander("All numbers"):
        st.dataframe(table(measured, costs, against), hide_index=True)
    load_plotly()


def _verdict(measured: Measured, found: PlannerResult, costs: Costs, against: Against) -> None:
    """The answer, then its numbers, then the measurements behind it."""
    show = {True: st.success, False: st.warning, None: st.info}[found.speculate]
    icon = {True: ":material/check_circle:", False: ":material/block:", None: ":material/help:"}[found.speculate]
    answer_text = words.escape_markdown(sentences.verdict(found, baseline(measured, against)))
    show(f"**{answer_text}** {words.escape_markdown(sentences.what_would_change_it(found))}", icon=icon)
    cards.show_cards([main_cards(measured, found)])
    about = words.escape_markdown(words.cut(sentences.about(measured), 400))
    st.caption(f":orange-badge[Assumptions, not measurements] {about}" if measured.assumed else about)
    for warning in sentences.warnings(measured, costs, against):
        st.caption(words.escape_markdown(warning))
    if measured.assumed and session.visit().run is None:
        st.info(_NO_MEASUREMENT, icon=":material/info:")


def _charts(measured: Measured, costs: Costs, against: Against) -> None:
    args = (measured, costs, against)
    maps = {"rtt_map": planner.rtt_map(*args), "draft_map": planner.draft_speed_map(*args)}
    curves = {"speed_curve": planner.speed_curve(*args), "marginal": planner.marginal_bars(*args)}
    show_row("planner_maps", "Break-even", maps)
    show_row("planner_curves", "Over K", curves)
