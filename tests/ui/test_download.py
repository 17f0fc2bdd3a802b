"""When the download button sends its text; the browser's part is tested in Chromium."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st

from specviz.ui.parts import download


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    held: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", held)
    return held


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    monkeypatch.setattr(download, "_download", lambda *, data, **_: messages.append(data))
    monkeypatch.setattr(st, "fragment", lambda draw: draw)
    return messages


def draw(session: dict[str, Any], ask: dict[str, Any] | None) -> None:
    session["save"] = {"ask": ask}
    download.show_download("Save it", lambda: "a text", name="it.txt", help="why", key="save")


def test_the_text_is_sent_once_on_request(session: dict[str, Any], sent: list[dict[str, Any]]) -> None:
    draw(session, None)
    for times in (1, 1, 2):  # told of twice, and asked again before the answer can have come
        draw(session, {"asked": "q1", "times": times})
    draw(session, None)
    plain = {"key": "save", "label": "Save it", "help": "why"}
    answer = plain | {"asked": "q1", "text": "a text", "name": "it.txt", "mime": "text/plain"}
    assert sent == [plain, answer, plain, plain, plain]
    assert "a text" not in str(session), "nothing is kept"


def test_a_lost_answer_is_sent_again_and_a_new_request_is_answered(
    session: dict[str, Any], sent: list[dict[str, Any]]
) -> None:
    draw(session, {"asked": "q1", "times": 1})
    draw(session, {"asked": "q1", "times": 3})
    draw(session, {"asked": "q2", "times": 1})
    assert [message.get("asked") for message in sent] == ["q1", "q1", "q2"]
