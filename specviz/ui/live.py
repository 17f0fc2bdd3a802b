"""The Live page: a prompt, a run, and everything that happens in it as it happens."""

from __future__ import annotations

import streamlit as st

from specviz.environment import environment
from specviz.errors import PromptError, SpecvizError
from specviz.settings import Settings
from specviz.ui import components, page, phases, session
from specviz.ui.form import settings_form
from specviz.ui.prompts import EXAMPLES
from specviz.ui.session import Catalog, Visit
from specviz.ui.welcome import show_welcome
from specviz.views import figures, summary, words

TREE_POLL_S, NUMBERS_POLL_S, CHARTS_POLL_S = 0.2, 0.5, 1.0


def show(catalog: Catalog) -> None:
    """Draw the page. `catalog` says which models there are and makes their host."""
    page.set_up("Live")
    visit = session.visit()
    fields = settings_form(catalog, _defaults())
    _controls(catalog, visit, fields)
    if visit.run is None:
        show_welcome()
    else:
        visit.view.resend()
        _run_view(visit)
    components.load_libraries()


def _defaults() -> Settings:
    """First values from the environment and `.env`; a bad one is reported and the built-in ones are used."""
    try:
        return Settings.resolve(environment=environment())
    except SpecvizError as error:
        st.error(words.complaint(error) + "\n\nUntil then the built-in defaults are used.", icon=":material/error:")
        return Settings()


def _controls(catalog: Catalog, visit: Visit, fields: dict[str, object]) -> None:
    """Prompt, Run, Stop, download."""
    if "prompt" not in st.session_state:
        st.session_state["prompt"] = EXAMPLES[0].prompt
    st.pills(
        "Examples", [e.name for e in EXAMPLES], key="example", on_change=_take_example, label_visibility="collapsed"
    )
    st.text_area(
        "Prompt", key="prompt", persist_state="session", height=104, label_visibility="collapsed",
        placeholder="Your prompt, or one of the examples above",
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center"):
        run = st.button("Run", type="primary", icon=":material/play_arrow:", disabled=visit.live)
        st.button("Stop", icon=":material/stop:", disabled=not visit.live, on_click=_stop, args=(visit,))
        if visit.run is not None:
            _download(visit)
    if run and not visit.live:
        _start(catalog, visit, fields)
    if "refused" in st.session_state:
        st.error(st.session_state["refused"], icon=":material/error:")


def _take_example() -> None:
    for example in EXAMPLES:
        if example.name == st.session_state["example"]:
            st.session_state["prompt"] = example.prompt


def _start(catalog: Catalog, visit: Visit, fields: dict[str, object]) -> None:
    """Start a run, or say why not; prompt and settings stay as they are either way."""
    st.session_state.pop("refused", None)
    prompt = str(st.session_state["prompt"] or "")
    try:
        if not prompt.strip():
            raise PromptError("The prompt is empty.", "Write one, or take one of the examples.")
        visit.start(session.host(catalog), Settings.resolve(fields, environment=environment()), prompt)
    except SpecvizError as error:
        st.session_state["refused"] = words.complaint(error)
    else:
        st.rerun()


def _stop(visit: Visit) -> None:
    if visit.run is not None:
        visit.run.stop()


def _download(visit: Visit) -> None:
    run = visit.run
    assert run is not None
    st.download_button(
        "Download trace",
        # Called when it is clicked, so a running run gives what it has by then.
        lambda: "".join(line.rstrip("\n") + "\n" for line in run.trace_lines()),
        file_name=f"specviz-{run.id}.jsonl",
        mime="application/jsonl",
        on_click="ignore",
        icon=":material/download:",
        help="Every event of the run as JSON lines, as far as it has come.",
    )


def _run_view(visit: Visit) -> None:
    """Three fragments, each at its own pace, that stop polling when the run has ended."""
    live = visit.live

    @st.fragment(run_every=NUMBERS_POLL_S if live else None)
    def numbers() -> None:
        run = _poll(visit, live)
        phases.show_header(run)
        phases.show_phase(run)
        _cards(visit)

    @st.fragment(run_every=TREE_POLL_S if live else None)
    def tree_and_text() -> None:
        run = _poll(visit, live)
        visit.view.show_text(run.state, run.id, "No text." if run.done else "The text appears here.")
        visit.view.show_tree(run.state, run.id)

    @st.fragment(run_every=CHARTS_POLL_S if live else None)
    def charts() -> None:
        run = _poll(visit, live)
        state = run.state
        drawn = [figures.acceptance_gauge(state), figures.speed_bars(state), figures.latency_bars(state)]
        components.show_charts(drawn, run.id)

    numbers()
    left, right = st.columns([7, 3], gap="medium")
    with left:
        tree_and_text()
        st.caption(summary.green_limit(visit.run.settings.k))
    with right:
        charts()


def _poll(visit: Visit, polling: bool):
    """Take in what has come. When the run has ended, run the whole page once more: that ends the polling."""
    run = visit.run
    assert run is not None
    visit.touch()
    run.drain()
    if polling and run.done:
        st.rerun()
    return run


_TONES = {"good": "green", "bad": "red", "neutral": "gray"}


def _cards(visit: Visit) -> None:
    run = visit.run
    assert run is not None
    cards = summary.numbers(run.state, run.settings)
    for column, card in zip(st.columns(len(cards)), cards, strict=True):
        column.metric(
            card.name, card.value, card.note or None, help=card.help, delta_arrow="off",
            delta_color=_TONES[card.tone], border=True, height="stretch",
        )  # fmt: skip
    if run.state.latest and run.state.latest.note:
        st.caption(f"Last round: {words.escape_markdown(run.state.latest.note)}")
