"""Above the run: the prompt, Run, Stop, the pace, and the download of the trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from specviz.core.settings import Settings
from specviz.ui import page, session
from specviz.ui.catalog import Catalog
from specviz.ui.form import as_typed
from specviz.ui.key_field import take_key
from specviz.ui.pacing import show_pacing
from specviz.ui.parts.download import show_download
from specviz.ui.prompts import EXAMPLES
from specviz.ui.remote_form import refuse_secrets, take_secrets_out
from specviz.ui.session import Visit

if TYPE_CHECKING:
    from specviz.host.run import Run


def show_controls(catalog: Catalog, visit: Visit, fields: Mapping[str, Any]) -> None:
    """Draw them, and start a run of `fields` when Run is pressed."""
    page.heading("Prompt")
    if "prompt" not in st.session_state:
        st.session_state["prompt"] = EXAMPLES[0].prompt
    st.pills(
        "Examples", [e.name for e in EXAMPLES], key="example", on_change=_take_example, label_visibility="collapsed",
        help="  \n".join(f"**{e.name}.** {e.shows}" for e in EXAMPLES),
    )  # fmt: skip
    st.text_area(
        "Prompt", key="prompt", persist_state="session", height=72, label_visibility="collapsed",
        placeholder="Your prompt, or one of the examples above",
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        # A callback: it runs before the page does, so a page run that is cut short cannot lose the click.
        st.button(
            "Run", type="primary", icon=":material/play_arrow:", disabled=visit.live,
            on_click=_start, args=(catalog, fields),
        )  # fmt: skip
        st.button("Stop", icon=":material/stop:", disabled=not visit.live, on_click=_stop)
        with st.container(width="content"):
            show_pacing(visit)
        if visit.run is not None:
            with st.container(width="content"):
                _download(visit.run)
    if refusal := visit.refusal(_request(catalog, fields)):
        page.show_error(refusal)


def _take_example() -> None:
    for example in EXAMPLES:
        if example.name == st.session_state["example"]:
            st.session_state["prompt"] = example.prompt


def _stop() -> None:
    session.visit().stop()


def _start(catalog: Catalog, fields: Mapping[str, Any]) -> None:
    """Start a run, or say why not; prompt and settings stay in either case."""
    # Not an argument: Streamlit keeps arguments in session state, and a visit must not be there.
    visit = session.visit()
    if visit.live:
        return
    with visit.refusing(lambda: _request(catalog, fields)):
        take_key(visit)
        take_secrets_out()
        refuse_secrets()
        settings = Settings.resolve(as_typed(catalog, fields))
        visit.start(session.host(catalog), settings, _prompt())
        session.put_into_address(visit)


def _prompt() -> str:
    return str(st.session_state["prompt"] or "")


def _request(catalog: Catalog, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that a click on Run would start now."""
    return as_typed(catalog, fields) | {"prompt": _prompt()}


def _download(run: Run) -> None:
    show_download(
        "Download trace",
        lambda: "".join(run.trace_lines()),
        name=f"specviz-{run.id}.jsonl",
        mime="application/jsonl",
        help="The events of the run as JSON lines, in whole rounds, up to what is shown.",
    )
