"""Sending only what changed, over a channel that may lose messages.

Streamlit keeps only the newest message per element, so a busy browser misses some. Every message names the revisions
that it covers, `from` one `to` another. The browser applies a message only if it starts at or before the revision that
it has, and otherwise requests what it lacks. A `Cursor` is the server's half of this protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

#: A message from revision `from` up to `to`; a changed "run" tells the browser to start anew.
Delta = TypedDict("Delta", {"run": str, "from": int, "to": int, "items": list[dict[str, Any]]})


class Need(TypedDict):
    """A request of the browser for everything after `rev`. `n` is the number of the request."""

    n: int
    rev: int


@dataclass(slots=True)
class Cursor:
    """The revision up to which a run's changes were sent to the browser."""

    run: str = ""
    sent: int = 0
    answered: int = 0

    def base(self, run: str, need: Need | None) -> int:
        """Where the next message starts: after the last one sent, or earlier where the browser lacks something."""
        if run != self.run:
            self.run, self.sent = run, 0
        if need is not None and need["n"] != self.answered:
            self.answered = need["n"]
            self.sent = min(self.sent, max(0, need["rev"]))
        return self.sent
