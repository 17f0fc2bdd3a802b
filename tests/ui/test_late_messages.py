"""A request waits for the messages of the run that has just ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests

from specviz.ui import late_messages


class Session:
    """The part of a Streamlit session that is used."""

    def __init__(self, runner: Any) -> None:
        self._event_loop = asyncio.get_running_loop()
        self._scriptrunner = runner


def _runner(*, ended: bool) -> Any:
    requests = ScriptRequests()
    requests.request_rerun(RerunData())
    requests.on_scriptrunner_ready()
    if ended:
        requests.on_scriptrunner_ready()
    return SimpleNamespace(_requests=requests)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reaches Streamlit's own code."""
    seen: list[str] = []
    monkeypatch.setattr(late_messages, "_original", lambda session, state: seen.append(state))
    return seen


def _in_loop(story: Callable[[Any], Any], *, ended: bool) -> None:
    async def whole() -> None:
        await story(Session(_runner(ended=ended)))

    # In a thread of its own: Playwright's loop runs in the thread of the tests.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(lambda: asyncio.run(whole())).result()


def test_requests_wait_in_order_until_the_last_message_was_taken(started: list[str]) -> None:
    async def story(session: Any) -> None:
        late_messages.request_rerun(session, "click")
        late_messages.request_rerun(session, "poll")
        await asyncio.sleep(0.03)
        assert not started
        session._scriptrunner = None
        late_messages.request_rerun(session, "second poll")
        await asyncio.sleep(0.05)
        assert started == ["click", "poll", "second poll"]
        late_messages.request_rerun(session, "third poll")
        assert started[-1] == "third poll", "nothing waits any more"

    _in_loop(story, ended=True)


def test_a_thread_that_goes_on_gets_the_request_at_once(started: list[str]) -> None:
    async def story(session: Any) -> None:
        late_messages.request_rerun(session, "click")
        assert started == ["click"]

    _in_loop(story, ended=False)


def test_no_request_waits_for_ever(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_messages, "_LOOKS", 2)

    async def story(session: Any) -> None:
        late_messages.request_rerun(session, "click")
        await asyncio.sleep(0.05)
        assert started == ["click"]

    _in_loop(story, ended=True)


def test_every_session_of_the_process_waits() -> None:
    from specviz.ui import page  # noqa: F401

    assert AppSession.request_rerun is late_messages.request_rerun
