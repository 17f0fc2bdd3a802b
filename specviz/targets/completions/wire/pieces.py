"""Reads the events of a streamed answer, one by one."""

from __future__ import annotations

from typing import Any

from specviz.targets.completions.values import Piece


class PieceReader:
    """Turns events into pieces.

    Attributes:
        seen: whether any event came. finished: whether the server gave a finish reason.
    """

    def __init__(self) -> None:
        self.seen = self.finished = False
        self._counted = False

    def read(self, at: float, event: object) -> Piece | None:
        """The piece of an event that came at `at`; None where it holds neither text nor a count.

        Tokens are counted by ids or log-probabilities. A server that gives neither mostly sends their sum at the end:
        that becomes a piece without text.
        """
        self.seen = True
        if not isinstance(event, dict):
            return None
        choice = _first(event.get("choices"))
        if choice is None:
            return self._sum(at, event)
        self.finished = self.finished or choice.get("finish_reason") is not None
        text, tokens = choice.get("text"), _tokens(choice)
        self._counted = self._counted or tokens is not None
        text = text if isinstance(text, str) else ""
        if text or tokens:
            return Piece(at, text, tokens)
        return self._sum(at, event)

    def _sum(self, at: float, event: dict[str, Any]) -> Piece | None:
        usage = event.get("usage")
        count = usage.get("completion_tokens") if isinstance(usage, dict) else None
        if self._counted or not self.finished or type(count) is not int or count < 0:
            return None
        self._counted = True
        return Piece(at, "", count)


def _first(choices: object) -> dict[str, Any] | None:
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return None


def _tokens(choice: dict[str, Any]) -> int | None:
    """How many tokens a choice of an event holds; None where that cannot be counted."""
    logprobs = choice.get("logprobs")
    rows = logprobs if isinstance(logprobs, dict) else {}
    for listed in (choice.get("token_ids"), rows.get("tokens"), rows.get("content")):
        if isinstance(listed, list):
            return len(listed)
    return None
