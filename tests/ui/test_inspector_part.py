"""The inspector's message by the page's model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from specviz.views.inspector import detail
from specviz.views.selection import Selection
from tests.ui.test_live_page import _components, _page, _run, _until_done, _visit


def _chosen(page: AppTest, node_id: int | None) -> dict[str, Any]:
    """The choice after a click, and the message that answers it."""
    visit = _visit(page)
    visit.view.selection = Selection(visit.run.id, node_id, visit.view.selection.at + 1)
    page.run()
    assert not page.exception
    return _components(page)["specviz_inspector"]


@pytest.fixture
def hostile() -> AppTest:
    return _until_done(_run(_page(), "hostile"))


def test_no_detail_is_sent_until_a_token_is_chosen(hostile: AppTest) -> None:
    told = _components(hostile)["specviz_inspector"]
    assert told["items"] == [] and told["selected"] is None and len(json.dumps(told)) < 120


def test_hostile_tokens_reach_the_inspector_as_data(hostile: AppTest) -> None:
    state = _visit(hostile).run.state
    worst = ("<script>", "onerror", "xxxxx", "\u202e", "\x00")
    nodes = [next(n for n in state.nodes if sign in n.token and n.status == "accepted") for sign in worst]
    for node in (*nodes, next(n for n in state.nodes if n.status == "rejected")):
        told = _chosen(hostile, node.id)
        [item] = told["items"]
        assert item == json.loads(json.dumps(detail(state, node.id))) and told["selected"] == node.id
        assert len(json.dumps(told)) < 6_000, "a token of ten thousand letters is cut"
        assert "\u202e" not in str(item) and "\x00" not in str(item)
    script = next(n for n in state.nodes if n.token.startswith("<script>") and n.status == "accepted")
    assert _chosen(hostile, script.id)["items"][0]["token"] == "<script>alert(1)</script>"
    assert _chosen(hostile, None)["items"] == []


def test_a_poll_without_a_change_sends_no_detail(hostile: AppTest) -> None:
    visit = _visit(hostile)
    first = _chosen(hostile, 3)
    view = visit.view.inspector_view
    assert first["to"] == view.delta(visit.run.state, visit.run.id, first["to"], 3)["to"]
    assert view.delta(visit.run.state, visit.run.id, first["to"], 3)["items"] == []
