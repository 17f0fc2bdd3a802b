"""A button that saves a text. The text is made at the click, sent once, and not kept.

Streamlit's own download button keeps its file at an address that is soon gone on a page that polls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from specviz.ui.parts import assets

#: The arrow of a download, as Material draws it.
_ICON = (
    '<svg viewBox="0 0 24 24" fill="currentColor" aria-hidden="true">'
    '<path d="M12 16l-5-5 1.4-1.4 2.6 2.6V4h2v8.2l2.6-2.6L17 11zM4 20v-5h2v3h12v-3h2v5z"/></svg>'
)

#: A request that arrives this often, seconds apart, has lost its answer.
_LOST_AFTER = 3

_download = assets.component(
    "specviz_download",
    html=f'<div class="download"><button type="button">{_ICON}<span class="status" aria-live="polite"></span></button>'
    '<span class="note" role="alert" hidden></span></div>',
    css=assets.ours("download.css"),
    js=assets.ours("download.js"),
)


def show_download(
    label: str, make: Callable[[], str], *, name: str, mime: str = "text/plain", help: str = "", key: str = "download"
) -> None:
    """Draw the button. It is a fragment of its own: a click runs nothing else.

    Args:
        make: makes the text, once per request.
        name: of the file that is saved. key: one per button of a page.
    """

    @st.fragment
    def download() -> None:
        data: dict[str, Any] = {"key": key, "label": label, "help": help}
        # Read before the component is drawn: the request comes with this run only.
        ask = assets.state_of(key).get("ask")
        if ask and _is_new(key, ask["asked"], ask["times"]):
            data |= {"asked": ask["asked"], "text": make(), "name": name, "mime": mime}
        _download(key=key, data=data, width="content", on_ask_change=assets.nothing, on_got_change=assets.nothing)

    download()


def _is_new(key: str, asked: str, times: int) -> bool:
    """Whether to answer a request: the first time that it arrives, and when its answer seems to be lost."""
    answered = f"{key}_answered"
    before = st.session_state.get(answered)
    st.session_state[answered] = asked
    return asked != before or times >= _LOST_AFTER
