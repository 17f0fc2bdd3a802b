"""A masked field that encrypts what is typed before it leaves the browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specviz.ui.parts import assets

_key_field = assets.component(
    "specviz_key",
    html='<div class="field"><div class="label">API key</div>'
    '<div class="entry"><input type="password" aria-label="API key" autocomplete="off" spellcheck="false">'
    '<button type="button">Set</button></div>'
    '<div class="held" hidden><span></span><button type="button">Forget</button></div>'
    '<div class="note" role="alert" hidden></div></div>',
    css=assets.ours("key.css"),
    js=assets.ours("key.js"),
)


def show_key_field(key: str, data: dict[str, Any], on_change: Callable[[], None]) -> None:
    """Draw the masked field; what it sends is in the session state under `key`, encrypted."""
    _key_field(key=key, data=data, on_key_change=on_change, on_forget_change=on_change)
