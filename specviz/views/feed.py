"""Sending only what changed, over a channel that may lose messages.

Streamlit keeps only the newest message per element, so a browser that is busy misses some. Every message says what it
covers, `from` one revision `to` another; the browser applies a message only if it starts at or before what it has, and
otherwise asks for what it lacks. A `Cursor` is the server's half of that agreement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

#: A message from revision `from` up to `to`; "run" tells the browser to start afresh when it changes.
Delta = TypedDict("Delta", {"run": str, "from": int, "to": int, "items": list[dict[str, Any]]})


class Need(TypedDict):
    """What the browser asks for: everything after `rev`. `n` tells one request from the next."""

    n: int
    rev: int


@dataclass(slots=True)
class Cursor:
    """Up to which revision the browser was sent a run's changes."""

    run: str = ""
    sent: int = 0
    answered: int = 0

    def base(self, run: str, need: Need | None) -> int:
        """Where the next message starts: at what was sent last, or earlier where the browser lacks something."""
        if run != self.run:
            self.run, self.sent = run, 0
        if need is not None and need["n"] != self.answered:
            self.answered = need["n"]
            self.sent = min(self.sent, max(0, need["rev"]))
        return self.sent
