"""The field for a key: masked, sent once, and never sent back."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from specviz.core.errors import SettingsError
from specviz.ui.keys import LONGEST_BYTES
from specviz.ui.parts import assets
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
    _take_in(visit)
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
            "note": str(visit.key_complaint or ""),
            "pad": visit.keys.pad.to_json(),
            "tooLong": f"A key has at most {LONGEST_BYTES} characters.",
        },
        assets.nothing,
    )
    # Also before there is one: a line that came with the key would move the button below from under a click.
    st.caption("A key stays in memory until this tab is closed, and goes to this address alone.")


def take_key(visit: Visit) -> None:
    """Take in what the field has just sent.

    Whoever needs the key asks this first: a key that was typed right before a click comes together with the click.

    Raises:
        SettingsError: what was typed last cannot be a key. Once that has refused a click, the next goes without a key.
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
