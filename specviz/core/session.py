"""One run from prompt to last event: prepare, measure plain decoding, empty the caches, decode.

Everything that decodes on behalf of a person goes through `run`: the terminal, the page, a benchmark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from specviz.core.baseline import Baselines
from specviz.core.decoding import PlainSpeeds, autoregressive, speculative
from specviz.core.errors import RunError, StoppedError
from specviz.core.events import Done, Error, Event, Metrics
from specviz.core.pair import Pair
from specviz.core.ports import Progress, Target, Wait
from specviz.core.prompt import prepare
from specviz.core.settings import Settings


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """What is decoded behind.

    Attributes:
        ids: template applied. text: what they encode, for the record.
    """

    ids: Sequence[int]
    text: str = ""


def run(
    pair: Pair,
    prompt: str | EncodedPrompt,
    settings: Settings,
    *,
    baselines: Baselines | None = None,
    seed: int | None = None,
    wait: Wait = Wait(),
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Event]:
    """Decode one prompt with a draft.

    Args:
        pair: drafter and target; both caches are emptied first, so that equal seeds give equal runs.
        prompt: as a person typed it, or with its ids.
        baselines: known plain decoding, and where a new measurement is kept; None for a run without a baseline, which
            has no speed-up.
        seed: instead of that of the settings.
        wait: told how far the baseline is; asked once a round. Cancelled before the first round, there are no events.
        clock: seconds.

    Yields:
        See `specviz.core.decoding.speculative`.

    Raises:
        PromptError: nothing can be decoded from the prompt.
        RunError: the target failed while its baseline was measured.
    """
    if isinstance(prompt, str):
        text, ids = prepare(pair.target, settings, prompt)
        prompt = EncodedPrompt(ids, text)
    plain = PlainSpeeds()
    if baselines is not None and not wait.cancelled():
        plain = baselines.of(pair, prompt.ids, settings, wait).speeds
    if wait.cancelled():
        return
    pair.target.reset()
    pair.drafter.reset()
    yield from speculative(
        pair.drafter,
        pair.target,
        prompt.ids,
        settings,
        seed=seed,
        prompt_text=prompt.text,
        plain=plain,
        cancelled=wait.cancelled,
        clock=clock,
    )


def run_plain(
    target: Target,
    prompt: EncodedPrompt,
    settings: Settings,
    *,
    seed: int | None = None,
    wait: Wait = Wait(),
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Event]:
    """Decode one prompt without a drafter, from an empty cache: what every speed-up is measured against."""
    target.reset()
    yield from autoregressive(
        target, prompt.ids, settings, seed=seed, prompt_text=prompt.text, cancelled=wait.cancelled, clock=clock
    )


def finished(
    events: Iterator[Event], what: str = "", total: int | None = None, wait: Wait = Wait()
) -> tuple[Done, list[Metrics]]:
    """The end of a run that nobody looks at, and its rounds.

    Args:
        what, total: of the progress that is told after each round; nothing is told without words.

    Raises:
        RunError: it failed.
        StoppedError: it was stopped, so its text is not whole.
    """
    rounds: list[Metrics] = []
    emitted = 0
    for event in events:
        if isinstance(event, Error):
            raise RunError(event.message, event.remedy)
        if isinstance(event, Metrics):
            rounds.append(event)
            emitted += event.emitted
            if what:
                wait.on_progress(Progress(what, emitted, total, "tokens"))
        if isinstance(event, Done) and event.finish_reason != "stopped":
            return event, rounds
    raise StoppedError("The run was stopped.")
