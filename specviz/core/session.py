"""One run from prompt to last event: prepare, measure plain decoding, empty the caches, decode.

The CLI, the page and the benchmark all decode through `run`.
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
from specviz.core.ports import Target
from specviz.core.prompt import prepare
from specviz.core.rounds import Explain
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """A prompt that is already encoded.

    Attributes:
        ids: with the template applied. text: the text that they encode, for the recording.
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
    explain: Explain = 1,
    wait: Wait = Wait(),
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Event]:
    """Decode one prompt with a draft.

    Args:
        pair: drafter and target; both caches are emptied first, so that equal seeds give equal runs.
        prompt: as the user typed it, or already encoded.
        baselines: cache of measured baselines, to which a new measurement is added; None for a run without a baseline
            and hence without a speed-up.
        seed: overrides the seed of the settings.
        explain: how much is recorded about each token: 2 for what is shown or kept to be looked at.
        wait: receives the progress of the baseline, and is checked for cancellation once per round. If cancelled
            before the first round, there are no events.
        clock: current time in seconds.

    Yields:
        See `specviz.core.decoding.speculative`.

    Raises:
        PromptError: nothing can be decoded from the prompt.
        RunError: the target failed during the measurement of its baseline.
    """
    if isinstance(prompt, str):
        text, ids = prepare(pair.target, settings, prompt)
        prompt = EncodedPrompt(ids, text)
    plain = PlainSpeeds()
    if baselines is not None and not wait.cancelled():
        plain = baselines.of(pair, prompt.ids, settings, wait, explain).speeds
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
        explain=explain,
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
    """Decode one prompt without a drafter, from an empty cache: plain decoding, the reference of every speed-up."""
    target.reset()
    yield from autoregressive(
        target,
        prompt.ids,
        settings,
        seed=seed,
        prompt_text=prompt.text,
        explain=1,
        cancelled=wait.cancelled,
        clock=clock,
    )


def finished(
    events: Iterator[Event], what: str = "", total: int | None = None, wait: Wait = Wait()
) -> tuple[Done, list[Metrics]]:
    """Consume the events of a run; return its `Done` event and the metrics of its rounds.

    Args:
        what, total: for the progress reported after each round; without `what` nothing is reported.

    Raises:
        RunError: the run failed.
        StoppedError: the run was stopped, so its text is incomplete.
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
