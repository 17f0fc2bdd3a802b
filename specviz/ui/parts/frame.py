"""What Streamlit has no way to say: that the menu is the page's navigation, and a cookie."""

from __future__ import annotations

from specviz.ui.parts import assets

_frame = assets.component("specviz_frame", isolate_styles=False, js=assets.ours("frame.js"))


def show_frame(name: str, mark: str) -> None:
    """Make the container with the key `menu` the navigation, and set a cookie unless the browser has it already."""
    _frame(key="frame", data={"name": name, "mark": mark})
