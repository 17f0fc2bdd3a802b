"""What a click does, it does to its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from streamlit.runtime.scriptrunner import RerunException

P = ParamSpec("P")


def whole(callback: Callable[P, None]) -> Callable[P, None]:
    """A callback that a newer message from the browser cannot cut short.

    Each look at session state is a point where Streamlit drops what it is at for a newer message. In a callback that
    would lose the click for good: the newer message does not tell of it again. So the callback begins anew, and the
    newer message is answered after it. It must look at session state before it changes anything, or be such that
    doing it twice is doing it once.
    """

    @wraps(callback)
    def to_its_end(*args: P.args, **kwargs: P.kwargs) -> None:
        newer: RerunException | None = None
        while True:
            try:
                callback(*args, **kwargs)
                break
            except RerunException as interruption:
                # Should two come within one callback, the later one has all the values of the earlier.
                newer = interruption
        if newer is not None:
            raise newer

    return to_its_end
