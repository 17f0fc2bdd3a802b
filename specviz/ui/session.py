"""The state of the process, which is the host of all models, and the state of one visitor."""

from __future__ import annotations

import logging
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.runtime import get_instance
from streamlit.runtime.scriptrunner import get_script_run_ctx

from specviz.bench.sweep.job import BenchJob
from specviz.core.connection import Secret
from specviz.core.errors import SettingsError, SpecvizError
from specviz.core.events import Error
from specviz.core.settings import Settings
from specviz.record.pace import Pace
from specviz.ui.catalog import Catalog
from specviz.ui.keys import Keys
from specviz.ui.live_view import LiveView
from specviz.views import words
from specviz.views.pacing import RATES, PaceName

if TYPE_CHECKING:
    from specviz.bench.sweep.results import Bench
    from specviz.host.check import Check
    from specviz.host.models import ModelHost
    from specviz.host.run import Run
    from specviz.host.trial import Tried

log = logging.getLogger(__name__)

#: A short loss of the websocket looks like a closed tab; a run goes on this long without its visitor.
GRACE_S = 15.0

#: A click within this time, on a button that was drawn before the last click, is a repeated report of that click.
_REPEAT_S = 1.0
#: The same for Pause and Resume, which a user may click one after the other.
_HOLD_REPEAT_S = 0.4

#: The query parameter of the page's address that holds the token of its visit.
ADDRESS = "visit"
#: The cookie that tells one browser from others. Of an address alone nobody can tell who has opened it: it is shared,
#: copied and kept. Only both together find a visit again.
COOKIE = "specviz_browser"


class Visit:
    """The state of one visitor: run, tests, benchmark, keys, and whether the visitor is still there.

    Attributes:
        run: the newest run, or None before the first. view: what the browser has been sent of it.
        token: in the page's address once there is a run, so that a reload finds the visit again.
        browser: the mark of the browser that it belongs to, see `COOKIE`.
        restored: settings of the run that was kept over a reload, or None.
        checks: the newest test of the target and of the draft, where there was one.
        older_checks: ids of the tests from before the run.
        pacing: how fast runs are shown. steps: how often Step was pressed.
        keys: the keys to servers that the visitor has typed. key_address: the address that the key field is for.
        key_complaint: why what was typed last is no key.
        bench: the newest benchmark that was started here, or None.
        opened: the saved benchmark that is shown instead.
        connected: whether the visitor's browser is connected now.
    """

    def __init__(self, browser: str = "") -> None:
        self.run: Run | None = None
        self.view = LiveView()
        self.token = secrets.token_urlsafe(12)
        self.browser = browser or secrets.token_urlsafe(18)
        self.restored: Settings | None = None
        self.checks: dict[Tried, Check] = {}
        self.older_checks: set[str] = set()
        self.pacing: PaceName = "free"
        self.steps = 0
        self.keys = Keys()
        self.key_address = ""
        self.key_complaint: SettingsError | None = None
        self.bench: BenchJob | None = None
        self.opened: Bench | None = None
        self.connected: Callable[[], bool] = lambda: True
        self._lock = threading.Lock()
        self._left_at = -1.0
        self._refused: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._stepped_at = self._held_at = 0.0

    @property
    def live(self) -> bool:
        """Whether more will come from the run."""
        return self.run is not None and not self.run.done

    @property
    def living(self) -> tuple[bool, ...]:
        """Whether more will come from the run, and from each of the tests."""
        return self.live, *(check.live for check in self.checks.values())

    def start(self, host: ModelHost, settings: Settings, prompt: str) -> None:
        """Start a run in place of the one before.

        Raises:
            SpecvizError: the settings, the pair or the prompt do not allow it; the run before stays as it is.
        """
        run = host.start(settings, prompt, key=self._key(settings))
        self.stop()
        run.pace = Pace(RATES[self.pacing], paused=self.pacing == "step")
        self.run, self.view = run, LiveView()
        self.older_checks = {check.id for check in self.checks.values()}
        self._refused.pop("run", None)

    def choose_pace(self, choice: PaceName) -> None:
        """Show this run and later ones at this pace. A paused run stays paused, unless it was stepped before."""
        before, self.pacing = self.pacing, choice
        if self.run is None:
            return
        self.run.pace.set(RATES[choice])
        if choice == "step":
            self.run.pace.pause()
        elif before == "step":
            self.run.pace.resume()

    def resume(self) -> None:
        """Let a paused run go on; after step by step it goes on as it comes."""
        if self.pacing == "step":
            self.choose_pace("free")
        if self.run is not None:
            self.run.pace.resume()

    def step(self, press: int) -> None:
        """Show one more round. `press` is the value of `steps` when the button was drawn.

        Streamlit may report one click several times: with every poll that is sent before the click itself.
        """
        now = time.monotonic()
        if self.run is None or (press != self.steps and now - self._stepped_at < _REPEAT_S):
            return
        self.steps, self._stepped_at = self.steps + 1, now
        self.run.pace.step()

    def is_repeat(self) -> bool:
        """Whether a click on Pause or Resume is a repeated report of the one before."""
        now = time.monotonic()
        repeat, self._held_at = now - self._held_at < _HOLD_REPEAT_S, now
        return repeat

    def test(self, host: ModelHost, what: Tried, settings: Settings) -> None:
        """Test a target or a draft, in place of the test of it before.

        Raises:
            SpecvizError: the settings name nothing that can be tested; the test before stays as it is.
        """
        self.checks[what] = host.test(what, settings, key=self._key(settings))
        self._refused.pop(what, None)

    def start_bench(self, host: ModelHost, bench: Bench, path: Path | None) -> None:
        """Start a benchmark, or go on with one, in place of the one before.

        Raises:
            SpecvizError: the host was closed, or somebody else writes the file.
        """
        job = BenchJob(bench, host, path, key=self._key(bench.plan.settings))
        try:
            host.enqueue(job)
        except SpecvizError:
            job.finish()
            raise
        self.stop_bench()
        self.bench, self.opened = job, None
        self._refused.pop("bench", None)

    def stop_bench(self) -> None:
        """End the benchmark, if there is one; what is measured stays."""
        if self.bench is not None:
            self.bench.stop()

    def stop_checks(self) -> None:
        """End the tests, if there are any."""
        for check in self.checks.values():
            check.stop()

    def _key(self, settings: Settings) -> Secret | None:
        """The key that was typed for the address in these settings."""
        return self.keys.get(settings.base_url) if settings.base_url else None

    def refuse(self, why: str, request: Mapping[str, Any], of: str = "run") -> None:
        """Note why a click started nothing, as Markdown, with its request. `of`: a run, a test or a benchmark."""
        self._refused[of] = (why, request)
        self.key_complaint = None

    @contextmanager
    def refusing(self, request: Callable[[], Mapping[str, Any]], of: str = "run") -> Iterator[None]:
        """Run the code of a click; note an error as the refusal of the request.

        An exception in a callback would replace the whole page, with everything typed there, by a traceback.
        """
        try:
            yield
        except SpecvizError as error:
            self.refuse(words.complaint(error), request(), of)
        except Exception as exc:
            log.exception("a click failed: %s", of)
            self.refuse(words.complaint(Error.of(exc)), request(), of)

    def has_new_key(self) -> None:
        """Forget refusals: with a new key the same request may succeed."""
        self._refused.clear()
        self.key_complaint = None

    def refusal(self, request: Mapping[str, Any], of: str = "run") -> str:
        """Why exactly this request was refused; empty where it was not, so that a correction removes the error."""
        why, refused = self._refused.get(of, ("", {}))
        return why if request == refused else ""

    def stop(self) -> None:
        """Stop the run, if there is one; it ends within its present round."""
        if self.run is not None:
            self.run.stop()

    def left(self, grace_s: float = GRACE_S) -> threading.Timer:
        """The connection was lost: stop the run unless the visitor is back within `grace_s`."""
        self._left_at = time.monotonic()
        timer = threading.Timer(grace_s, self._stop_unless_back, (self._left_at,))
        timer.daemon = True
        timer.start()
        return timer

    def hand_over(self, browser: str, grace_s: float = GRACE_S) -> Visit | None:
        """Move run and keys to the visitor's next session: after a reload, the old session never comes back.

        Args:
            browser: the mark of the browser that asks.

        Returns:
            The new visit, with the same token; None where another browser asks, there is no run, the visitor is still
            here (a second tab with the same address), or left too long ago.
        """
        if not secrets.compare_digest(browser.encode(), self.browser.encode()):
            return None
        with self._lock:
            nothing = self.run is None and self.bench is None
            if nothing or self.connected() or time.monotonic() - self._left_at > grace_s:
                return None
            heir = Visit(self.browser)
            heir.run, self.run = self.run, None
            heir.bench, self.bench = self.bench, None
            heir.keys, self.keys = self.keys, heir.keys
            heir.pacing = self.pacing
            heir.view.selection = self.view.selection
            heir.restored = heir.run.settings if heir.run else None
            heir.token, self.token = self.token, heir.token
            return heir

    def _stop_unless_back(self, left_at: float) -> None:
        if self._left_at == left_at and not self.connected():
            self.stop()
            self.stop_checks()
            self.stop_bench()
            self.keys.clear()


class Anchor:
    """Stands for a visit in session state, so that keys, and runs that hold one, cannot be reached from there."""

    __slots__ = ("__weakref__",)


#: Anchor → visit, as long as its session exists.
_visits: weakref.WeakKeyDictionary[Anchor, Visit] = weakref.WeakKeyDictionary()
#: Token → visit, for a visitor who comes back after a reload.
_by_token: weakref.WeakValueDictionary[str, Visit] = weakref.WeakValueDictionary()


def visit() -> Visit:
    """This visitor's `Visit`, watched for the end of the session; after a reload, the one from before."""
    if "visit" not in st.session_state:
        before = _by_token.get(st.query_params.get(ADDRESS, ""))
        browser = _browser()
        mine = before.hand_over(browser) if before else None
        if mine is None:
            mine = Visit(browser)
        elif mine.run is not None:
            st.session_state["prompt"] = mine.run.prompt
        anchor = st.session_state["visit"] = Anchor()
        _visits[anchor] = _by_token[mine.token] = mine
    mine = of(st.session_state["visit"])
    mine.connected = _connection()
    if mine.run is not None or mine.bench is not None:
        # A link of the menu drops the token from the address, and a reload would find nothing.
        put_into_address(mine)
    watched = _watch()
    if mine not in watched:
        watched.append(mine)
    return mine


def _browser() -> str:
    """The mark of the visitor's browser; empty on its first page."""
    return st.context.cookies.get(COOKIE, "")


def of(anchor: Anchor) -> Visit:
    """The visit that an anchor stands for."""
    return _visits[anchor]


def put_into_address(visit: Visit) -> None:
    """Let a reload find the visit. Called when a run starts: each change is an entry in the browser's history."""
    if st.query_params.get(ADDRESS) != visit.token:
        st.query_params[ADDRESS] = visit.token


def _connection() -> Callable[[], bool]:
    """Whether the session of the running script is connected, asked at the time of the call.

    Polls do not tell: one that was under way when the connection was lost still runs after `Visit.left`.
    """
    running, runtime = get_script_run_ctx(), get_instance()
    assert running is not None  # a page is drawn by a script
    session_id = running.session_id
    return lambda: runtime.is_active_session(session_id)


def _disconnected(watched: list[Visit]) -> None:
    for one in watched:
        one.left()


@st.cache_resource(scope="session", on_release=_disconnected)
def _watch() -> list[Visit]:
    """Released when the session disconnects; holds the visit, which is then told."""
    return []


def _close(old: ModelHost) -> None:
    old.close()


@st.cache_resource(show_spinner=False, on_release=_close)
def host(_catalog: Catalog) -> ModelHost:
    """The one owner of all models in this process."""
    return _catalog.make_host()
