"""What stands before a prompt that goes on with a conversation: the earlier turns and the target's answers to them.

The answers are the target's own at temperature 0, written once and outside every measured time. All cells are asked
the same, so that their runs can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from specviz.core.decoding import autoregressive, speculative
from specviz.core.errors import RunError, StoppedError
from specviz.core.events import Done, Error, Metrics
from specviz.core.pair import Pair
from specviz.core.ports import Distant, Exchange, OnProgress, Progress
from specviz.core.prompt import prepare
from specviz.core.settings import Settings


@dataclass(slots=True)
class Conversations:
    """Those that have been written, so that none is written twice.

    Attributes:
        on_progress: told of every token. cancelled: asked after every round.
    """

    on_progress: OnProgress = lambda _: None
    cancelled: Callable[[], bool] = lambda: False
    _answers: dict[tuple[str, ...], str] = field(default_factory=dict)

    def know(self, asked: Sequence[str], answers: Iterable[str]) -> None:
        """Take in answers that were written before, one for each turn."""
        for count, answer in enumerate(answers, start=1):
            self._answers[tuple(asked[:count])] = answer

    def before(self, asked: Sequence[str], pair: Callable[[], Pair], settings: Settings) -> tuple[Exchange, ...]:
        """Turns and answers, in order.

        Args:
            asked: what was asked before the prompt, in order.
            pair: whose target answers; called where something has to be written.
            settings: of any run of it; their temperature and rule are unused.

        Raises:
            PromptError: a turn and all before it do not fit into the context.
            RunError: the run failed.
            StoppedError: it was cancelled on the way.
        """
        so_far: list[Exchange] = []
        for count, question in enumerate(asked, start=1):
            turns = tuple(asked[:count])
            if turns not in self._answers:
                self._answers[turns] = self._write(pair(), _greedy(settings), question, so_far)
            so_far.append((question, self._answers[turns]))
        return tuple(so_far)

    def _write(self, pair: Pair, settings: Settings, question: str, before: Sequence[Exchange]) -> str:
        target = pair.target.near if isinstance(pair.target, Distant) else pair.target
        _, ids = prepare(target, settings, question, before)
        rng = np.random.default_rng(settings.seed)
        if settings.target.startswith("openai:"):
            # One call per token would bill the prompt again for each.
            events = speculative(pair.drafter, target, ids, settings, rng, cancelled=self.cancelled)
        else:
            events = autoregressive(target, ids, settings, rng, cancelled=self.cancelled)
        written = 0
        try:
            for event in events:
                if isinstance(event, Error):
                    raise RunError(event.message, event.remedy)
                if isinstance(event, Metrics):
                    written += event.emitted
                    self.on_progress(Progress("Answering the turn before", written, settings.max_tokens, "tokens"))
                if isinstance(event, Done) and event.finish_reason != "stopped":
                    return event.generated_text
        finally:
            target.reset()
            pair.drafter.reset()
        raise StoppedError("It was stopped while an earlier turn was answered.")


def _greedy(settings: Settings) -> Settings:
    """The same at temperature 0: what the target itself would say, and the same each time."""
    return replace(settings, temperature=0.0, rule="probabilistic")
