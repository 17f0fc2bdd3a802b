"""See, measure and trust speculative decoding.

In a notebook or a script: `specviz.run("Explain why the sky is blue.")`, see `specviz.api.run`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specviz.api import Generation, run
    from specviz.core.errors import SpecvizError
    from specviz.core.settings import Settings

__version__ = "0.3.0"
__all__ = ["Generation", "Settings", "SpecvizError", "run"]

_HOMES = {
    "Generation": "specviz.api",
    "Settings": "specviz.core.settings",
    "SpecvizError": "specviz.core.errors",
    "run": "specviz.api",
}


def __getattr__(name: str) -> object:
    """The names of `__all__`, loaded at their first use (PEP 562): the page and the commands do not need the API."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
