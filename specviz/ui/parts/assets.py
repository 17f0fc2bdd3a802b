"""How a component's script reaches the page: a library once, what is polled in a few hundred bytes.

A library travels once, with the page; what is polled carries a thin script and a delta. Inlined in the polled
component, vis-network alone would cost 476 kB per poll. Both libraries come from installed Python packages, so the page
works with the network cut.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import streamlit as st

from specviz.views.feed import Need

_BROWSER = Path(__file__).parents[1] / "browser"

component = st.components.v2.component


def ours(name: str) -> str:
    """A script or style of our own."""
    return (_BROWSER / name).read_text(encoding="utf-8")


def library(name: str, bundle: Path, *scripts: str, constants: str = "") -> str:
    """The script that brings a bundle and our renderers into the page, and starts the components that wait for it.

    The renderers' styles are among the `constants`: in the polled components they would cost kilobytes per poll.
    """
    parts = [bundle.read_text(encoding="utf-8"), ours("feed.js"), constants, *map(ours, scripts), ours("library.js")]
    return "\n".join(parts).replace("LIBRARY", name)


def styles(*renderers: str) -> dict[str, str]:
    """The style sheet of each renderer, by its name."""
    return {name: ours(f"{name}.css") for name in renderers}


def start(library: str, renderer: str) -> str:
    """The polled component's script: calls a renderer once its library is here."""
    return ours("start.js").replace("LIBRARY", library).replace("RENDERER", renderer)


def state_of(key: str) -> dict[str, Any]:
    """What the component of this key has reported last, name → value."""
    return dict(st.session_state.get(key) or {})


def need(key: str) -> Need | None:
    """What the component of this key lacks, if it has said so."""
    return cast("Need | None", state_of(key).get("need"))


def nothing() -> None:
    """A component reports state only where it has a callback; the next poll reads it."""
