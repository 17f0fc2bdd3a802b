"""Toy completions servers for the page: slow enough to be watched, and mortal."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from specviz.engines.toy import ToyScorer, ToyTokenizer
from tests.targets.completions.toyserver import ToyServer, serve


class Toy(ToyServer):
    """The toy target behind a server.

    Args:
        delay_s: of every answer.
    """

    def __init__(self, dialect: str = "vllm", *, delay_s: float = 0.0, **options: Any) -> None:
        tokenizer = ToyTokenizer()
        super().__init__(ToyScorer(tokenizer), dialect, tokenizer, **options)
        self._delay_s, self._gone = delay_s, threading.Event()
        #: How many drafts it still scores; then it answers nothing any more. None: any number.
        self.scores: int | None = None

    def answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        """As any toy server, later; without its model in the end, with a status that nobody repeats a call for."""
        self._gone.wait(self._delay_s)
        if self.scores is not None and body.get("echo"):
            self.scores -= 1
            if self.scores < 0:
                self._gone.set()
        if self._gone.is_set():
            return 404, self._error(404, "The model was unloaded.")
        return super().answer(path, body)


__all__ = ["Toy", "serve"]
