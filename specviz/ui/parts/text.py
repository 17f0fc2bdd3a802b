"""The output, one element per token, extended by deltas."""

from __future__ import annotations

from typing import Any

from specviz.ui.parts import assets

_text = assets.component(
    "specviz_text", html='<section class="frame" aria-label="Text"></section>', js=assets.start("vis", "text")
)


def show_text(message: dict[str, Any]) -> None:
    """Send a message of `views.text`.

    Its `placeholder` is shown where there is no text; `selected` is the id of the chosen node, and `place` that of the
    node which stands for it in the text.
    """
    _text(key="text", data=message, on_need_change=assets.nothing, on_selected_change=assets.nothing)
