from __future__ import annotations

import threading
from typing import cast
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from specviz.core.errors import PromptError
from specviz.core.settings import Settings
from specviz.host.models import ModelHost
from specviz.ui import page, session
from specviz.ui.parts import assets, libraries
from specviz.ui.session import Visit
from tests.ui.fakes import FakeHost

PATIENCE_S = 10.0


def _visit() -> Visit:
    visit = Visit()
    visit.start(cast(ModelHost, FakeHost()), Settings(), "endless")
    return visit


def _leave(visit: Visit, grace_s: float = 15.0) -> threading.Timer:
    visit.connected = lambda: False
    return visit.left(grace_s)


def test_a_visitor_who_leaves_stops_the_run() -> None:
    visit = _visit()
    _leave(visit, grace_s=0.01).join(PATIENCE_S)
    assert visit.run.stops == 1


def test_a_visitor_who_is_back_within_the_grace_keeps_it() -> None:
    visit = _visit()
    timer = _leave(visit, grace_s=0.05)
    visit.connected = lambda: True
    timer.join(PATIENCE_S)
    assert visit.run.stops == 0


def test_each_loss_of_the_connection_has_its_own_grace() -> None:
    visit = _visit()
    first, second = _leave(visit, grace_s=0.01), _leave(visit)
    first.join(PATIENCE_S)
    second.cancel()
    assert visit.run.stops == 0


def test_a_reload_keeps_the_run_and_the_old_session_cannot_stop_it() -> None:
    visit = _visit()
    run, token = visit.run, visit.token
    timer = _leave(visit, grace_s=0.05)
    visit.view.selection.take("r", {"run": "r", "id": 3, "at": 1.0})
    heir = visit.hand_over(visit.browser)
    assert heir.run is run and heir.token == token and heir.restored == run.settings
    assert visit.run is None and visit.token != token and visit.hand_over(visit.browser) is None
    assert heir.view.selection.id == 3, "the token that is looked at"
    timer.join(PATIENCE_S)
    assert run.stops == 0


@pytest.mark.parametrize("browser", ["", "another"])
def test_an_address_in_another_browser_gives_neither_run_nor_keys(browser: str) -> None:
    visit = _visit()
    run, token = visit.run, visit.token
    _leave(visit).cancel()
    assert visit.hand_over(browser) is None
    assert visit.run is run and visit.token == token, "its own browser still finds it"
    heir = visit.hand_over(visit.browser)
    assert heir is not None and heir.run is run and heir.browser == visit.browser


def test_a_poll_that_still_runs_after_the_connection_was_lost_does_not_count_as_the_visitor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The whole page is run once more after the loss, as a poll may be that was under way."""
    page = AppTest.from_file("fake_app.py", default_timeout=30).run()
    page.text_area(key="prompt").set_value("endless").run()
    next(b for b in page.button if b.label == "Run").click().run()
    visit = session.of(page.session_state["visit"])
    assert visit.live
    monkeypatch.setattr(session, "get_instance", lambda: Mock(**{"is_active_session.return_value": False}))
    visit.left().cancel()
    page.run()
    heir = visit.hand_over(visit.browser)
    assert heir is not None and heir.live


def test_only_a_visit_that_was_left_within_the_grace_is_handed_over() -> None:
    visit = _visit()
    assert visit.hand_over(visit.browser) is None, "a second tab with the same address gets a visit of its own"
    _leave(visit).cancel()
    assert visit.hand_over(visit.browser, grace_s=-1.0) is None
    visit.connected = lambda: True
    assert visit.hand_over(visit.browser) is None, "the connection was back at once"
    empty = Visit()
    _leave(empty).cancel()
    assert empty.hand_over(empty.browser) is None


def test_a_new_run_stops_the_one_before_and_is_drawn_from_nothing() -> None:
    visit = _visit()
    before, view = visit.run, visit.view
    visit.start(cast(ModelHost, FakeHost()), Settings(), "talk")
    assert before.stops == 1 and visit.run is not before and visit.view is not view


def test_a_refused_start_changes_nothing() -> None:
    visit = _visit()
    before = visit.run
    with pytest.raises(PromptError):
        visit.start(cast(ModelHost, FakeHost()), Settings(), " ")
    assert visit.run is before and before.stops == 0


def test_polled_components_are_small_and_libraries_are_complete() -> None:
    thin = assets.start("vis", "tree")
    assert len(thin) < 1000
    library = assets.library("vis", libraries._VIS, "tree.js", "text.js")
    assert "vis" in library and "specviz.tree" in library and "LIBRARY" not in library


def test_model_text_enters_the_page_as_text_only() -> None:
    for script in sorted(assets._BROWSER.glob("*.js")):
        source = script.read_text()
        for door in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert door not in source, f"{script.name} uses {door}"


def test_the_menu_lists_pages_that_exist() -> None:
    root = assets._BROWSER.parents[2]
    assert all((root / entry.path).is_file() for entry in page.PAGES)
    with pytest.raises(KeyError):
        page.set_up("No such page")
