"""The beginning of every page: title, menu, mark. Each page calls it: after a deep link app.py does not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from specviz.ui import late_messages

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

#: Pages use the whole width; Streamlit's own margins take a quarter of a small window.
_STYLE = """<style>
[data-testid="stMainBlockContainer"] { padding-inline: clamp(1rem, 4vw, 4rem); }
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
        for entry in _menu():
            st.page_link(entry.path, label=entry.name, icon=entry.icon, help=entry.purpose)
    return page


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
