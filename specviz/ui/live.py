"""The Live page: a prompt, and a run shown while it happens."""

from __future__ import annotations

import streamlit as st

from specviz.core.errors import SettingsError, SpecvizError
from specviz.core.settings import ENVIRONMENT, Settings
from specviz.setup.environment import environment
from specviz.ui import page, session
from specviz.ui.catalog import AppCatalog, Catalog
from specviz.ui.checks import show_checks
from specviz.ui.controls import show_controls
from specviz.ui.form import refuse_what_no_widget_holds, settings_form
from specviz.ui.parts.libraries import load_libraries
from specviz.ui.run_view import show_run
from specviz.ui.welcome import show_welcome
from specviz.views import words


@page.says_errors
def show(catalog: Catalog | None = None) -> None:
    """Draw the page. `catalog` lists the models and makes their host."""
    catalog = catalog or AppCatalog()
    page.set_up("Live")
    visit = session.visit()
    defaults, complaint = _defaults()
    if complaint:
        page.show_error(complaint)
    fields, places = settings_form(catalog, visit, visit.restored or defaults)
    living = visit.living
    show_controls(catalog, visit, fields)
    show_checks(catalog, visit, fields, places)
    if visit.run is None:
        show_welcome()
    else:
        show_run(visit, visit.run)
    load_libraries()
    if visit.living != living:
        # One of them ended while the page was drawn, and lights and buttons above still show it as running.
        st.rerun()


def _defaults() -> tuple[Settings, str]:
    """First values from the environment and `.env`, and an error for each variable that was left out."""
    try:
        found = environment()
    except SpecvizError as error:
        return Settings(), words.complaint(error) + "\n\nThe built-in defaults are used instead."
    good: dict[str, str] = {}
    complaints = []
    for variable in ENVIRONMENT:
        try:
            tried = {**good, variable: found.get(variable, "")}
            refuse_what_no_widget_holds(Settings.resolve(environment=tried))
            good = tried
        except SpecvizError as error:
            named = "" if variable in error.message else f"{variable}: "
            complaint = SettingsError(named + error.message, error.remedy)
            complaints.append(words.complaint(complaint) + "\n\nThe built-in default is used instead.")
    return Settings.resolve(environment=good), "\n\n".join(complaints)
