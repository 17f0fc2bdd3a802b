"""The frame of every page: title, menu, mark, headings. Each page calls it: after a deep link app.py does not run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from html import escape
from pathlib import Path
from typing import Literal, ParamSpec

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from specviz.core.errors import SpecvizError, of_system
from specviz.ui import late_messages, session
from specviz.ui.parts.frame import show_frame
from specviz.views import words

log = logging.getLogger(__name__)
P = ParamSpec("P")

late_messages.install()


@dataclass(frozen=True, slots=True)
class Page:
    """One entry of the menu: the script's path, its name, what it is for."""

    path: str
    name: str
    purpose: str
    icon: str


#: The mark is our own file: Streamlit fetches the picture of a named icon from the internet.
_MARK = str(Path(__file__).parent / "mark.svg")
_WORDMARK = str(Path(__file__).parent / "wordmark.svg")

#: Pages use the whole width; Streamlit's own margins take a quarter of a small window. What only screen readers find
#: (headings, the status line, the frame) takes no room, not even a gap.
_STYLE = """<style>
[data-testid="stMainBlockContainer"] { padding-inline: clamp(1rem, 4vw, 4rem); }
[data-testid="stElementContainer"]:is(:has(.unseen), .st-key-status, .st-key-frame) {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
:is(h2, h3).seen { margin: 0; padding: 0; font-weight: 600; line-height: 1.4; font-size: 1.25rem; }
h3.seen { font-size: 1rem; }
</style>"""

PAGES: tuple[Page, ...] = (
    Page("app.py", "Live", "Watch speculative decoding, token by token.", ":material/account_tree:"),
    Page("pages/1_Benchmark.py", "Benchmark", "Measure drafts and K against plain decoding.", ":material/speed:"),
    Page("pages/2_Planner.py", "Planner", "Whether speculation pays: K, round trip, draft speed.", ":material/map:"),
)


def set_up(name: str) -> Page:
    """Configure the page called `name` and draw the menu.

    Raises:
        KeyError: no page of that name is in the table.
    """
    page = next((p for p in PAGES if p.name == name), None)
    if page is None:
        raise KeyError(f"{name!r} is not in PAGES")
    st.set_page_config(page_title=f"{name} · specviz", page_icon=_MARK, layout="wide")
    st.html(_STYLE)
    st.logo(_WORDMARK, icon_image=_MARK, size="large")
    with st.sidebar:
        with st.container(key="menu"):
            for entry in _menu():
                st.page_link(entry.path, label=entry.name, icon=entry.icon, help=entry.purpose)
        show_frame(session.COOKIE, session.visit().browser)
    heading(f"{name}: {page.purpose[0].lower()}{page.purpose[1:].rstrip('.')}", 1)
    return page


def heading(text: str, level: Literal[1, 2, 3] = 2, *, seen: bool = False) -> None:
    """A heading over a part of the page, so that a screen reader finds its way: 1 for the page, 2 for its parts.

    Args:
        seen: whether the eye needs it too. Streamlit's own headings each bring a link to themselves.
    """
    st.html(f'<h{level} class="{"seen" if seen else "unseen"}">{escape(text)}</h{level}>')


def _menu() -> Sequence[Page]:
    """The pages in the folder of the running script: Streamlit refuses links to others."""
    running = get_script_run_ctx()
    beside = Path(running.pages_manager.main_script_parent) if running else Path()
    found = [entry for entry in PAGES if (beside / entry.path).is_file()]
    # Streamlit has no page links while there is only one page.
    return found if len(found) > 1 else ()


def show_error(markdown: str) -> None:
    """One clear error, see `views.words.complaint`."""
    st.error(markdown, icon=":material/error:")


def says_errors(show: Callable[P, None]) -> Callable[P, None]:
    """A page that shows an error in place of what it cannot draw, as where the cache folder cannot be read."""

    @wraps(show)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            show(*args, **kwargs)
        except SpecvizError as error:
            show_error(words.complaint(error))
        except OSError as exc:
            log.exception("a page could not be drawn")
            show_error(words.complaint(of_system(exc)))

    return guarded
