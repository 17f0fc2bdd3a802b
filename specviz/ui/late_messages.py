"""Streamlit 1.67 drops messages of a run that has just ended; here a request waits until they are passed on.

A run of a script sends its messages to the event loop from a thread of its own. When the next request comes after that
thread's last run, but before the loop has taken its messages, Streamlit makes a new thread and ignores whatever still
comes from the old one. On a page that polls, a click could take effect while its button still showed the old label.
"""

from __future__ import annotations

from collections import deque
from typing import Any
from weakref import WeakKeyDictionary

from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType

#: Seconds between looks, and how many at most: a thread that is busy for longer is left to Streamlit.
_LOOK_S, _LOOKS = 0.005, 400

_original = AppSession.request_rerun
#: Requests that wait, in order, by session.
_waiting: WeakKeyDictionary[AppSession, deque[Any]] = WeakKeyDictionary()


def install() -> None:
    """Let every session of this process wait. May be called several times."""
    AppSession.request_rerun = request_rerun  # type: ignore[method-assign]


def request_rerun(self: AppSession, client_state: Any) -> None:
    """`AppSession.request_rerun`, later if the thread of the last run has ended and its messages are on their way."""
    if self in _waiting:
        _waiting[self].append(client_state)
    elif _has_messages_on_their_way(self):
        _waiting[self] = deque([client_state])
        self._event_loop.call_later(_LOOK_S, _look, self, _LOOKS)
    else:
        _original(self, client_state)


def _has_messages_on_their_way(session: AppSession) -> bool:
    # The session forgets the thread with its last message.
    runner = session._scriptrunner
    return runner is not None and runner._requests._state is ScriptRequestType.STOP


def _look(session: AppSession, looks: int) -> None:
    if looks and _has_messages_on_their_way(session):
        session._event_loop.call_later(_LOOK_S, _look, session, looks - 1)
        return
    for client_state in _waiting.pop(session, ()):
        _original(session, client_state)
