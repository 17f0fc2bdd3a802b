"""How a component's script reaches the page.

A library is sent once, with the page; a polled component has a small script and a delta. Inlined in the polled
component, vis-network alone would cost 476 kB per poll. Both libraries come from installed Python packages, so the page
works without a network.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import streamlit as st

from specviz.views.feed import Need

_BROWSER = Path(__file__).parents[1] / "browser"

component = st.components.v2.component


def ours(name: str) -> str:
    """The text of a script or style in `ui/browser`."""
    return (_BROWSER / name).read_text(encoding="utf-8")


def library(name: str, bundle: Path, *scripts: str, constants: str = "") -> str:
    """The script that loads a bundle and our renderers, and starts the components that wait for them.

    The renderers' styles are part of `constants`: in the polled components they would cost kilobytes per poll.
    """
    parts = [bundle.read_text(encoding="utf-8"), ours("feed.js"), constants, *map(ours, scripts), ours("library.js")]
    return "\n".join(parts).replace("LIBRARY", name)


def styles(*renderers: str) -> dict[str, str]:
    """The style sheet of each renderer, by its name."""
    return {name: ours(f"{name}.css") for name in renderers}


def start(library: str, renderer: str) -> str:
    """The polled component's script: calls a renderer once its library is loaded."""
    return ours("start.js").replace("LIBRARY", library).replace("RENDERER", renderer)


def state_of(key: str) -> dict[str, Any]:
    """The last report of the component with this key, name → value."""
    return dict(st.session_state.get(key) or {})


def need(key: str) -> Need | None:
    """What the component with this key lacks, if it has reported that."""
    return cast("Need | None", state_of(key).get("need"))


def nothing() -> None:
    """An empty callback: a component reports state only with a callback. The next poll reads the state."""
