"""What a screen reader calls the menu: Streamlit has no way to say that links are the navigation of the page."""

from __future__ import annotations

from specviz.ui.parts import assets

_landmarks = assets.component("specviz_landmarks", isolate_styles=False, js=assets.ours("landmarks.js"))


def show_landmarks() -> None:
    """Make the container with the key `menu` the navigation."""
    _landmarks(key="landmarks")
