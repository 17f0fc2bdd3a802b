"""What comes before a prompt that continues a conversation: the earlier turns and the target's answers to them.

The target writes the answers at temperature 0, once, and outside every measured time. All cells get the same
conversation, so that their runs can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from specviz.core import session
from specviz.core.names import parse_target
from specviz.core.pair import Pair
from specviz.core.ports import Exchange, without_network
from specviz.core.prompt import prepare
from specviz.core.settings import Settings
from specviz.core.wait import Wait


@dataclass(slots=True)
class Conversations:
    """The answers so far, so that none is written twice.

    Attributes:
        wait: called for every token, and after every round.
    """

    wait: Wait = Wait()
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
        near = replace(pair, target=without_network(pair.target))
        text, ids = prepare(near.target, settings, question, before)
        prompt = session.EncodedPrompt(ids, text)
        if parse_target(settings.target).place == "completions":
            # One call per token would bill the prompt again for each.
            events = session.run(near, prompt, settings, wait=self.wait)
        else:
            events = session.run_plain(near.target, prompt, settings, wait=self.wait)
        try:
            done, _ = session.finished(events, "Answering the turn before", settings.max_tokens, self.wait)
        finally:
            near.target.reset()
            near.drafter.reset()
        return done.generated_text


def _greedy(settings: Settings) -> Settings:
    """The same at temperature 0, where the target's answer is the same each time."""
    return replace(settings, temperature=0.0, rule="probabilistic")
