"""The field for a key: masked, sent once, and never sent back."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from specviz.errors import SettingsError
from specviz.ui.keys import LONGEST_BYTES
from specviz.ui.parts.key_field import show_key_field as draw_key_field
from specviz.ui.session import Visit

KEY_FIELD = "key_field"

#: closed: there is no address yet that a key could be for.
State = Literal["closed", "empty", "environment", "set"]

_SAID: dict[State, str] = {
    "closed": "base URL first",
    "empty": "if it asks for one",
    "environment": "From the environment",
    "set": "Key set for this session",
}
#: What the button beside a key that is there does.
_BUTTON: dict[State, str] = {"environment": "Change", "set": "Forget"}


def show_key_field(visit: Visit, url: str, *, from_environment: bool) -> None:
    """Draw it for the address of `url`; an empty one keeps it closed."""
    complaint = ""
    try:
        take_key(visit)
    except SettingsError as error:
        complaint = str(error)
    state: State = "closed" if not url else "set" if visit.keys.get(url) else "empty"
    if state == "empty" and from_environment:
        state = "environment"
    visit.key_address = url
    draw_key_field(
        KEY_FIELD,
        {
            "state": state,
            "said": _SAID[state],
            "button": _BUTTON.get(state, ""),
            "note": complaint,
            "pad": visit.keys.pad.to_json(),
            "tooLong": f"A key has at most {LONGEST_BYTES} characters.",
        },
        _nothing,
    )
    if state == "set":
        st.caption("In memory until this tab is closed, and for this address alone.")


def take_key(visit: Visit) -> None:
    """Take in what the field has just sent.

    Whoever needs the key asks this first: a key that was typed right before a click comes together with the click.

    Raises:
        SettingsError: it cannot be a key.
    """
    sent = st.session_state.get(KEY_FIELD) or {}
    url = visit.key_address
    if not url:
        return
    if sent.get("forget"):
        visit.keys.forget(url)
    visit.keys.take(url, sent.get("key"))


def _nothing() -> None:
    """A component reports what it sends only where it has a callback; the next run reads it."""
