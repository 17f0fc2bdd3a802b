"""What comes before a prompt that continues a conversation: the earlier turns and the target's answers to them.

The target writes the answers at temperature 0, once, and outside every measured time. All cells get the same
conversation, so that their runs can be compared.
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
    """The answers so far, so that none is written twice.

    Attributes:
        on_progress: called for every token. cancelled: called after every round.
    """

    on_progress: OnProgress = lambda _: None
    cancelled: Callable[[], bool] = lambda: False
    _answers: dict[tuple[str, ...], str] = field(default_factory=dict)

    def know(self, turns: Sequence[str], answers: Iterable[str]) -> None:
        """Add answers that were written before, one for each turn."""
        for count, answer in enumerate(answers, start=1):
            self._answers[tuple(turns[:count])] = answer

    def before(self, turns: Sequence[str], pair: Callable[[], Pair], settings: Settings) -> tuple[Exchange, ...]:
        """Turns and answers, in order.

        Args:
            turns: the turns before the prompt, in order.
            pair: opens the pair whose target answers; called only if an answer is missing.
            settings: of any of its runs; their temperature and rule are not used.

        Raises:
            PromptError: a turn and all before it do not fit into the context.
            RunError: the run failed.
            StoppedError: it was cancelled before its end.
        """
        so_far: list[Exchange] = []
        for count, question in enumerate(turns, start=1):
            until_here = tuple(turns[:count])
            if until_here not in self._answers:
                self._answers[until_here] = self._write(pair(), _greedy(settings), question, so_far)
            so_far.append((question, self._answers[until_here]))
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
        raise StoppedError("Stopped while an earlier turn was answered.")


def _greedy(settings: Settings) -> Settings:
    """The same at temperature 0, where the target's answer is the same each time."""
    return replace(settings, temperature=0.0, rule="probabilistic")
