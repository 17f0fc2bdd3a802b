"""The header of a run, and the line with its state: words, and a progress bar while it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from specviz.core.events import Error
from specviz.ui import page
from specviz.views import summary, words
from specviz.views.phase import Phase, phase, wait

if TYPE_CHECKING:
    from specviz.core.wait import Progress
    from specviz.host.run import Run


def show_header(run: Run) -> None:
    """The guarantee and its reason, the rule in force, target and draft, the engine."""
    colour, name = summary.badge(run.state.guarantee)
    guarantee = run.state.guarantee
    rule = summary.rule_in_force(run.settings, run.state)
    named = run.state.started or run.settings
    facts = f"rule **{words.escape_markdown(rule)}**, temperature **{run.settings.temperature:g}**"
    if ways := summary.ways(run.state):
        facts += f" · **{words.escape_markdown(ways)}**"
    target, draft = (words.escape_markdown(words.cut(name)) for name in (named.target, named.draft))
    pair = f"target **{target}**, draft **{draft}**"
    if engine := summary.engine(run.state):
        pair += f" · {words.escape_markdown(engine)}"
    reason = words.escape_markdown(guarantee.reason) if guarantee else "The guarantee is known once the run has begun."
    network = summary.network(run.settings, run.state)
    simulated = f":orange-badge[{words.escape_markdown(network)}] " if network else ""
    st.markdown(
        f":{colour}-badge[{words.escape_markdown(name)}] {reason}  \n{simulated}:small[:gray[{facts} · {pair}]]"
    )


def show_phase(run: Run) -> None:
    """The state of the run: waiting, running, ended or failed."""
    if run.state.error is not None:
        _failed(run.state.error, bool(run.state.text))
        return
    now = phase(run, words.escape_markdown)
    _show(now)
    if now.kind in ("running", "paused") and run.progress is not None:
        show_progress(run.progress)


def show_progress(progress: Progress) -> None:
    """What is waited for, and its progress."""
    _show(wait(progress, words.escape_markdown))


def _show(now: Phase) -> None:
    match now.kind:
        case "paused":
            # The same bar as while running, so that the page does not jump at each pause.
            st.progress(now.share or 0.0, f":material/pause_circle: {now.words}")
        case "finished":
            st.success(now.words, icon=":material/check_circle:")
        case "stopped":
            st.warning(now.words, icon=":material/stop_circle:")
        case "empty":
            st.warning(now.words, icon=":material/text_fields:")
        case _ if now.share is not None:
            st.progress(now.share, now.words)
        case _:
            st.info(now.words, icon=":material/hourglass_top:")


def _failed(error: Error, has_text: bool) -> None:
    kept = "\n\nThe text generated until then is below." if has_text else ""
    page.show_error(words.complaint(error) + kept)
