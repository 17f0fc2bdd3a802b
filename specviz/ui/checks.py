"""Lights and tests: whether target and draft answer, before a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import streamlit as st

from specviz.core.errors import SpecvizError
from specviz.core.settings import Settings
from specviz.ui import page, phases, session
from specviz.ui.catalog import Catalog
from specviz.ui.form import as_typed
from specviz.ui.key_field import take_key
from specviz.ui.remote_form import refuse_secrets, take_secrets_out
from specviz.ui.session import Visit
from specviz.views import trial, words

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from specviz.host.check import Check
    from specviz.host.trial import TrialOutcome, Tried

POLL_S = 0.5
#: The settings that a test depends on; its result is dropped when one of them changes.
_SUBJECT = ("target", "base_url", "tokenizer", "verification")


def show_checks(
    catalog: Catalog, visit: Visit, fields: Mapping[str, Any], places: Mapping[Tried, DeltaGenerator]
) -> None:
    """Draw a light, a button and the result of the test at the target and at the draft."""
    for what, place in places.items():
        with place:
            _show(catalog, visit, fields, what)


def _show(catalog: Catalog, visit: Visit, fields: Mapping[str, Any], what: Tried) -> None:
    now = as_typed(catalog, fields)
    check = visit.checks.get(what)
    if check is not None and not check.live and not _still_about(check.settings, what, now):
        check = None
    colour, word = trial.light(check)
    newer_run = None if check is not None and (check.live or check.id not in visit.older_checks) else visit.run
    from_run = ""
    if what == "target" and newer_run is not None and _still_about(newer_run.settings, what, now):
        colour, word, from_run = trial.light_of_run(newer_run.state, (colour, word))
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", gap="small"):
        st.markdown(f":{colour}[●] :small[{word}]", width="content")
        _button(catalog, visit, fields, what)
    if from_run:
        st.caption(from_run)
    elif check is not None and check.live:
        st.fragment(_wait_for, run_every=POLL_S)(visit, check)
    elif check is not None:
        _show_outcome(check)
    if refusal := visit.refusal(now, of=what):
        page.show_error(refusal)


def _wait_for(visit: Visit, check: Check) -> None:
    """Show the progress of a test. At its end run the whole page once more, which ends the polling."""
    if not check.live:
        st.rerun()
    if check.phase == "queued":
        st.caption("Waiting for the models: they do one job at a time.")
    elif check.progress is not None:
        phases.show_progress(check.progress)
    else:
        st.caption("Getting ready.")


def _show_outcome(check: Check) -> None:
    if check.error is not None:
        page.show_error(words.complaint(check.error))
    elif check.result is not None:
        _show_result(check.result)


def _button(catalog: Catalog, visit: Visit, fields: Mapping[str, Any], what: Tried) -> None:
    check = visit.checks.get(what)
    if check is not None and check.live:
        st.button("Cancel", key=f"cancel_{what}", on_click=_stop)
        return
    why_not = _why_not(visit, fields, what)
    st.button(
        f"Test the {what}", key=f"test_{what}", disabled=bool(why_not), help=why_not or _HELP[what],
        on_click=_start, args=(catalog, fields, what),
    )  # fmt: skip


_HELP: dict[Tried, str] = {
    "target": "Checks whether it answers and what it supports. A server may bill a few tokens for it.",
    "draft": "Lets the draft continue a short text.",
}


def _why_not(visit: Visit, fields: Mapping[str, Any], what: Tried) -> str:
    if visit.live:
        return "A run is going on. Wait for its end, or stop it."
    if any(check.live for check in visit.checks.values()):
        return "One test at a time."
    if what == "draft" and fields["draft"] == "none":
        return "There is no draft to test."
    return ""


def _show_result(result: TrialOutcome) -> None:
    lines = [trial.timing(result), trial.first_words(result)]
    st.caption("  \n".join(words.escape_markdown(line) for line in lines if line))
    for limit in trial.limits(result):
        st.caption(f":orange[{words.escape_markdown(limit)}]")
    if result.findings is not None:
        with st.expander("What this server can do"):
            way = words.WAYS[result.way] if result.way else words.NOT_KNOWN
            st.markdown(trial.table([*trial.findings(result.findings), ("With these settings", way)]))
            for note in trial.notes(result.findings):
                st.caption(words.escape_markdown(note))


def _still_about(tried: Settings, what: Tried, now: Mapping[str, Any]) -> bool:
    """Whether a result for the settings `tried` still holds for the present choice."""
    subject = (*_SUBJECT, "draft") if what == "draft" else _SUBJECT
    try:
        chosen = Settings.resolve(now)
    except SpecvizError:
        return False
    return all(getattr(tried, name) == getattr(chosen, name) for name in subject)


def _stop() -> None:
    session.visit().stop_checks()


def _start(catalog: Catalog, fields: Mapping[str, Any], what: Tried) -> None:
    """Start a test, or say why not."""
    visit = session.visit()
    if _why_not(visit, fields, what):
        return
    with visit.refusing(lambda: as_typed(catalog, fields), of=what):
        take_key(visit)
        take_secrets_out()
        refuse_secrets()
        visit.test(session.host(catalog), what, Settings.resolve(as_typed(catalog, fields)))
