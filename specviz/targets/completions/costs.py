"""The cost of calls to a server: time, bytes, billed tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from specviz.core.known import sum_known
from specviz.targets.completions.reading.model_names import model_in
from specviz.targets.completions.values import Answer, Completions, Engine, Piece, Reply, Request, Usage


@dataclass(frozen=True, slots=True)
class Cost:
    """A sum over calls, with the fields of `rounds.Verdict`; None where no call had the value."""

    call_ms: float = 0.0
    network_ms: float | None = None
    queue_ms: float | None = None
    compute_ms: float | None = None
    sent_bytes: int = 0
    received_bytes: int = 0
    billed_prompt_tokens: int | None = None
    billed_completion_tokens: int | None = None
    requests: int = 0

    @classmethod
    def of(cls, reply: Reply, answer: Answer | None = None) -> Cost:
        """The cost of one call. Where the server gives its computing time, the rest of the call is network time."""
        usage = answer.usage if answer else Usage()
        queue = (answer.queue_ms if answer else None) or 0.0
        compute = answer.compute_ms if answer else None
        split = compute is not None
        return cls(
            call_ms=0.0 if split else max(0.0, reply.call_ms - queue),
            network_ms=max(0.0, reply.call_ms - queue - compute) if compute is not None else None,
            queue_ms=reply.waited_ms + queue,
            compute_ms=compute,
            sent_bytes=reply.sent_bytes,
            received_bytes=reply.received_bytes,
            billed_prompt_tokens=usage.prompt,
            billed_completion_tokens=usage.completion,
            requests=reply.attempts,
        )

    def __add__(self, more: Cost) -> Cost:
        sums: list[Any] = [sum_known((getattr(self, f.name), getattr(more, f.name))) for f in fields(self)]
        return Cost(*sums)

    def as_fields(self) -> dict[str, Any]:
        """Keyword arguments for `dataclasses.replace` of a verdict."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


class Metered:
    """Keeps the replies of an API, so that those count whose answer could not be used.

    Attributes:
        models: every name under which the server has answered, in order.
    """

    def __init__(self, api: Completions) -> None:
        self._api = api
        self.replies: list[Reply] = []
        self.models: list[str] = []

    def complete(self, request: Request, *, engine: Engine = "") -> Reply:
        """The API's own call; its reply is kept."""
        reply = self._api.complete(request, engine=engine)
        self.replies.append(reply)
        if (name := model_in(reply.body)) and name not in self.models:
            self.models.append(name)
        return reply

    def stream(self, request: Request, *, engine: Engine = "") -> Iterator[Piece]:
        """The API's own call; not kept."""
        return self._api.stream(request, engine=engine)

    def get(self, path: str) -> Reply:
        """The API's own call; not kept."""
        return self._api.get(path)

    def lost(self) -> Cost:
        """The cost of the kept replies, which are dropped."""
        cost = sum((Cost.of(reply) for reply in self.replies), Cost())
        self.replies.clear()
        return cost
