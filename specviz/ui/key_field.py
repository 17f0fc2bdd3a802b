"""The field for a key: masked, sent once, and never sent back."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from specviz.core.address import is_open
from specviz.core.connection import UNENCRYPTED
from specviz.core.errors import SettingsError
from specviz.ui.keys import LONGEST_BYTES
from specviz.ui.parts import assets
from specviz.ui.parts.key_field import show_key_field as draw_key_field
from specviz.ui.session import Visit

KEY_FIELD = "key_field"

#: closed: there is no address yet that a key could belong to.
State = Literal["closed", "empty", "environment", "set"]

_TEXTS: dict[State, str] = {
    "closed": "base URL first",
    "empty": "if the server needs one",
    "environment": "From the environment",
    "set": "Key set for this session",
}
#: The button beside an existing key.
_BUTTON: dict[State, str] = {"environment": "Change", "set": "Forget"}


def show_key_field(visit: Visit, url: str, *, from_environment: bool) -> None:
    """Draw it for the address of `url`; without an address it is closed."""
    _take_in(visit)
    state: State = "closed" if not url else "set" if visit.keys.get(url) else "empty"
    if state == "empty" and from_environment:
        state = "environment"
    visit.key_address = url
    draw_key_field(
        KEY_FIELD,
        {
            "state": state,
            "text": _TEXTS[state],
            "button": _BUTTON.get(state, ""),
            "note": str(visit.key_complaint or ""),
            "pad": visit.keys.pad.to_json(),
            "tooLong": f"A key has at most {LONGEST_BYTES} characters.",
        },
        assets.nothing,
    )
    # Shown before there is a key too: a line that appears with the key would move the button below during a click.
    unencrypted = f" This {UNENCRYPTED}" if is_open(url) else ""
    st.caption(f"The key stays in memory until this tab is closed, and is sent to this address only.{unencrypted}")


def take_key(visit: Visit) -> None:
    """Take what the field has just sent.

    Called before every use of the key: a key that was typed right before a click arrives together with the click.

    Raises:
        SettingsError: what was typed last cannot be a key. After one refused click, the next one goes on without a key.
    """
    _take_in(visit)
    if visit.key_complaint is not None:
        raise visit.key_complaint


def _take_in(visit: Visit) -> None:
    sent = st.session_state.get(KEY_FIELD) or {}
    url = visit.key_address
    if not url:
        return
    visit.keys.forget(url, sent.get("forget"))
    try:
        if visit.keys.take(url, sent.get("key")):
            visit.has_new_key()
    except SettingsError as error:
        visit.key_complaint = error
