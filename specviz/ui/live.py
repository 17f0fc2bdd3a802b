"""The Live page: a prompt, a run, and everything that happens in it as it happens."""

from __future__ import annotations

from specviz.environment import environment
from specviz.errors import SpecvizError
from specviz.settings import Settings
from specviz.ui import components, page, session
from specviz.ui.controls import show_controls
from specviz.ui.form import settings_form
from specviz.ui.run_view import show_run
from specviz.ui.session import Catalog
from specviz.ui.welcome import show_welcome
from specviz.views import words


def show(catalog: Catalog) -> None:
    """Draw the page. `catalog` says which models there are and makes their host."""
    page.set_up("Live")
    visit = session.visit()
    defaults, complaint = _defaults()
    if complaint:
        page.show_error(complaint)
    fields = settings_form(catalog, defaults)
    show_controls(catalog, visit, fields)
    if visit.run is None:
        show_welcome()
    else:
        visit.view.resend()
        show_run(visit, visit.run)
    components.load_libraries()


def _defaults() -> tuple[Settings, str]:
    """First values from the environment and `.env`; where one is bad, the built-in ones and a complaint."""
    try:
        return Settings.resolve(environment=environment()), ""
    except SpecvizError as error:
        return Settings(), words.complaint(error) + "\n\nThe built-in defaults are used instead."
