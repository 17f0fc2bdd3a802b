"""One run of one cell on one prompt, from events to counts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from specviz.bench.sweep.plan import Cell, SweepPlan
from specviz.bench.sweep.results import Trial
from specviz.core import baseline, session
from specviz.core.errors import RunError, StoppedError
from specviz.core.events import Done, Error, Event, TimeSplit
from specviz.core.noise import derived_seed
from specviz.core.pair import Pair
from specviz.core.ports import Streaming, Target, without_network
from specviz.core.session import EncodedPrompt
from specviz.core.settings import Settings
from specviz.core.wait import Wait
from specviz.record.state import RunState

#: Indices of cell and prompt, and the repeat. The seed of a run comes from prompt and repeat, the same in every cell.
Key = tuple[int, int, int]


def run_cell(
    pair: Pair,
    plan: SweepPlan,
    cell: Cell,
    key: Key,
    prompt_ids: Sequence[int],
    *,
    max_tokens: int | None = None,
    wait: Wait = Wait(),
    clock: Callable[[], float] = time.perf_counter,
) -> Trial:
    """Decode once, from empty caches.

    Args:
        key: indices of cell and prompt, and the number of the repeat.
        prompt_ids: the whole prompt, template applied.
        max_tokens: in place of the plan's.

    Raises:
        RunError: the run failed.
        StoppedError: it was cancelled before its end.
    """
    settings = plan.settings_of(cell)
    if max_tokens is not None:
        settings = replace(settings, max_tokens=max_tokens)
    try:
        if cell.baseline == "streaming":
            pair.target.reset()
            return _streamed(pair.target, settings, key, prompt_ids, wait)
        found = trial_of(_events(pair, cell, settings, key, EncodedPrompt(prompt_ids), wait, clock), key)
        # This baseline decodes a few tokens only, so its text cannot be compared with whole texts.
        return replace(found, text_hash="") if cell.baseline == "one call per token" else found
    finally:
        pair.target.reset()
        pair.drafter.reset()


def _events(
    pair: Pair, cell: Cell, settings: Settings, key: Key, prompt: EncodedPrompt, wait: Wait, clock: Callable[[], float]
) -> Iterator[Event]:
    # The same for every K and rule: cells differ in what they do with the draws, prompts and repeats in the draws.
    seed = derived_seed(settings.seed, key[1], key[2])
    if cell.baseline is None:
        return session.run(pair, prompt, settings, seed=seed, wait=wait, clock=clock)
    target = pair.target
    if cell.baseline == "plain decoding without the network":
        target = without_network(target)
    if cell.baseline == "one call per token":
        # Every call bills the prompt again, and a few calls are enough for a mean.
        settings = replace(settings, max_tokens=min(settings.max_tokens, baseline.CALLS + 1))
    return session.run_plain(target, prompt, settings, seed=seed, wait=wait, clock=clock)


def trial_of(events: Iterable[Event], key: Key) -> Trial:
    """The counts of a run.

    Raises:
        RunError: it failed.
        StoppedError: it was stopped, and the counts of a part are not those of the run.
    """
    state = RunState()
    for event in events:
        if isinstance(event, Error):
            raise RunError(event.message, event.remedy)
        state.apply(event)
    done = state.done
    if done is None or done.finish_reason == "stopped":
        raise StoppedError("The run was stopped.")
    steady = state.rounds[1:]
    split = TimeSplit()
    for number, metrics in enumerate(steady):
        split = metrics.split if number == 0 else split + metrics.split
    sums = state.sums
    return Trial(
        *key,
        tokens=done.total_tokens,
        rounds=done.total_rounds,
        drafted=sums.drafted,
        tested=sums.tested,
        accepted=sums.accepted,
        steady_tokens=sum(m.emitted for m in steady),
        steady_ms=split.wall_ms,
        proposed=tuple(state.proposed),
        reached=tuple(state.reached),
        kept=tuple(state.kept),
        split=split,
        billed_prompt=sums.billed_prompt,
        billed_completion=sums.billed_completion,
        requests=sums.requests if sums.asking else None,
        finish=done.finish_reason,
        guarantee=str(done.guarantee),
        text_hash=_hash(done),
    )


def _hash(done: Done) -> str:
    return hashlib.sha256(",".join(map(str, done.token_ids)).encode()).hexdigest()[:16]


def _streamed(target: Target, settings: Settings, key: Key, prompt_ids: Sequence[int], wait: Wait) -> Trial:
    if not isinstance(target, Streaming):
        raise RunError(f"{target.name} cannot stream.", "Compare with one call per token.")
    came = baseline.streamed(target, prompt_ids, settings.sampling, settings.max_tokens, wait.cancelled)
    if wait.cancelled():
        raise StoppedError("The run was stopped.")
    if came is None:
        raise RunError(
            "The server's stream cannot be counted: it does not say how many tokens it sends.",
            "Compare with one call per token.",
        )
    tokens, seconds, _ = came
    return Trial(
        *key, tokens=tokens + 1, rounds=0, drafted=0, tested=0, accepted=0, steady_tokens=tokens,
        steady_ms=1000 * seconds, finish="streamed", guarantee="EXACT",
    )  # fmt: skip
