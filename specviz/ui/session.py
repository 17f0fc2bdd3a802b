"""What belongs to the process and what to one visitor: the host of all models, and the visitor's run."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

import streamlit as st

from specviz.settings import Settings
from specviz.ui.components import LiveView

if TYPE_CHECKING:
    from specviz.catalog import Choice
    from specviz.runner import ModelHost, Run

#: A websocket that blinks looks like a closed tab; a run goes on this long without its visitor.
GRACE_S = 15.0


class Catalog(Protocol):
    """What the page needs of `specviz.catalog`; tests bring their own."""

    def targets(self) -> list[Choice]:
        """Target models that can be chosen."""
        ...

    def drafts(self, target: str) -> list[Choice]:
        """Drafts that can be chosen for a target."""
        ...

    def make_host(self) -> ModelHost:
        """A new owner of all models."""
        ...


class Visit:
    """One visitor's run, and whether the visitor is still there.

    Attributes:
        run: the newest run, or None before the first. view: what the browser has been sent of it.
    """

    def __init__(self) -> None:
        self.run: Run | None = None
        self.view = LiveView()
        self._refused: tuple[str, Mapping[str, Any]] = ("", {})
        self._seen_at = time.monotonic()

    @property
    def live(self) -> bool:
        """Whether more will come from the run."""
        return self.run is not None and not self.run.done

    def touch(self) -> None:
        """The visitor's browser has just asked for something."""
        self._seen_at = time.monotonic()

    def start(self, host: ModelHost, settings: Settings, prompt: str) -> None:
        """Start a run in place of the one before.

        Raises:
            SpecvizError: the settings, the pair or the prompt do not allow it; the run before stays as it is.
        """
        run = host.start(settings, prompt)
        self.stop()
        self.run, self.view, self._refused = run, LiveView(), ("", {})

    def refuse(self, why: str, asked: Mapping[str, Any]) -> None:
        """Note why a click on Run started nothing, as Markdown, and what it had asked for."""
        self._refused = (why, asked)

    def refusal(self, asked: Mapping[str, Any]) -> str:
        """Why exactly this was refused; empty where it was not, so that a complaint goes once its cause is mended."""
        why, refused = self._refused
        return why if asked == refused else ""

    def stop(self) -> None:
        """Stop the run, if there is one; it ends within its present round."""
        if self.run is not None:
            self.run.stop()

    def left(self, grace_s: float = GRACE_S) -> threading.Timer:
        """The connection is gone: stop the run unless the visitor is back within the grace."""
        timer = threading.Timer(grace_s, self._stop_unless_back, (time.monotonic(),))
        timer.daemon = True
        timer.start()
        return timer

    def _stop_unless_back(self, left_at: float) -> None:
        if self._seen_at <= left_at:
            self.stop()


def visit() -> Visit:
    """This visitor's `Visit`, watched for the end of the session."""
    if "visit" not in st.session_state:
        st.session_state["visit"] = Visit()
    mine = cast(Visit, st.session_state["visit"])
    mine.touch()
    watched = _watch()
    if mine not in watched:
        watched.append(mine)
    return mine


def _disconnected(watched: list[Visit]) -> None:
    for one in watched:
        one.left()


@st.cache_resource(scope="session", on_release=_disconnected)
def _watch() -> list[Visit]:
    """Released when the session disconnects; holds the visit so that its end can be told."""
    return []


def _close(old: ModelHost) -> None:
    old.close()


@st.cache_resource(show_spinner=False, on_release=_close)
def host(_catalog: Catalog) -> ModelHost:
    """The one owner of all models in this process."""
    return _catalog.make_host()
