"""Runs of specviz against a live server, as its users start them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from specviz.core import session
from specviz.core.events import Done, Error, Event, Metrics, VerifyResult
from specviz.core.pair import Pair
from specviz.core.settings import Settings
from specviz.setup.builder import Builder
from tests.llama_server import MODEL

#: Repeats itself, with characters of several tokens.
LLAMAS = "I like llamas 🦙. I like cats 😀. I like llamas 🦙. I like cats 😀. I like"
SKY = "Explain why the sky is blue."
#: Nats between the two best tokens: with quantised weights, log-probabilities move by as much from batch to batch.
TIE = 0.05


@dataclass(frozen=True, slots=True)
class Ran:
    """The events of a run."""

    events: tuple[Event, ...]

    @property
    def ended(self) -> Done:
        last = self.events[-1]
        assert isinstance(last, Done), last
        return last

    @property
    def error(self) -> Error:
        last = self.events[-1]
        assert isinstance(last, Error), last
        return last

    @property
    def text(self) -> str:
        return self.ended.generated_text

    @property
    def decisions(self) -> list[VerifyResult]:
        """One per token of the text."""
        return [e for e in self.events if isinstance(e, VerifyResult) and e.final_token_id is not None]

    @property
    def requests(self) -> int:
        return sum(e.requests or 0 for e in self.events if isinstance(e, Metrics))


class Runs:
    """Runs against one server, which is probed once."""

    def __init__(self, url: str) -> None:
        self._builder = Builder({"TARGET_BASE_URL": url})

    def pair(self, **chosen: Any) -> tuple[Pair, Settings]:
        """Not closed yet."""
        settings = replace(Settings(target=f"openai:{MODEL}", draft="none", tokenizer=MODEL, max_tokens=16), **chosen)
        return self._builder.build(settings), settings

    def run(self, prompt: str, **chosen: Any) -> Ran:
        """A whole run; `chosen` are settings."""
        pair, settings = self.pair(**chosen)
        try:
            return Ran(tuple(session.run(pair, prompt, settings)))
        finally:
            pair.close()


def check_equal(ran: Ran, plain: Ran) -> None:
    """Two greedy texts are one, or part where the two best tokens are almost equally probable.

    Raises:
        AssertionError: they part elsewhere.
    """
    ids, known = ran.ended.token_ids, plain.ended.token_ids
    at = next((i for i, (one, other) in enumerate(zip(ids, known, strict=False)) if one != other), None)
    if at is None:
        assert len(ids) == len(known)
        return
    best = plain.decisions[at].top_tokens[:2]
    told = f"token {at} is {ids[at]} in place of {known[at]}: {best}"
    assert len(best) == 2 and best[1].token_id == ids[at] and best[0].logprob - best[1].logprob < TIE, told
    print(f"NUMERICAL TIE: {told}")
