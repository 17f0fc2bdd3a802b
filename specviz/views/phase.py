"""The state of a run in one sentence: for the line above it, and for screen readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from specviz.core.events import Done, FinishReason
from specviz.views import pacing, summary, words
from specviz.views.pacing import Standing

if TYPE_CHECKING:
    from specviz.core.settings import Settings
    from specviz.core.wait import Progress
    from specviz.host.job import Phase as JobPhase
    from specviz.record.pace import Pace
    from specviz.record.state import RunState


class ShownRun(Protocol):
    """A run that is shown: `host.run.Run`."""

    settings: Settings
    state: RunState
    phase: JobPhase
    progress: Progress | None
    pace: Pace
    rounds_computed: int

    @property
    def queue_position(self) -> int:
        """Runs that go first."""
        ...

    @property
    def full(self) -> bool:
        """Whether the models wait until more of it is shown."""
        ...


Kind = Literal["waiting", "running", "paused", "finished", "stopped", "empty", "failed"]
#: Escapes names and reasons that come from elsewhere.
Quote = Callable[[str], str]

#: The end of the sentence "There is no text: …", with a remedy.
_EMPTY: dict[FinishReason, str] = {
    "stop_token": " at once. Try another prompt, or switch Raw prompt on or off.",
    "stop_string": " before any other text.",
    "max_tokens": " by tokens without text. Try a larger Max tokens.",
    "context_full": ". A shorter prompt leaves room for an answer.",
    "stopped": ".",
}


@dataclass(frozen=True, slots=True)
class Phase:
    """The state of a run.

    Attributes:
        kind: which state. words: a sentence or two. share: progress from 0 to 1; None where it is not known.
    """

    kind: Kind
    words: str
    share: float | None = None


def phase(run: ShownRun, quote: Quote = words.visible) -> Phase:
    """The state of a run: waiting, running, ended or failed. The run's error has the cause of a failure."""
    if run.state.error is not None:
        return Phase("failed", "The run failed.")
    if run.state.done is not None:
        return _ended(run.state.done, quote)
    if run.phase == "queued":
        return Phase("waiting", _queued(run.queue_position))
    if run.phase in ("running", "finished"):
        return _going_on(run)
    return wait(run.progress, quote) if run.progress is not None else Phase("waiting", "Getting ready.")


def wait(progress: Progress, quote: Quote = words.visible) -> Phase:
    """What the run waits for, and its progress."""
    what = quote(progress.what)
    if progress.total:
        if progress.unit == "bytes":
            amount = f": {words.size(progress.done)} of {words.size(progress.total)}"
        else:
            # The bar shows "1 of 2 steps" already.
            amount = "" if progress.unit == "steps" else f": {progress.done:,} of {progress.total:,} {progress.unit}"
        return Phase("waiting", what + amount, min(1.0, progress.done / progress.total))
    if progress.done:
        amount = words.size(progress.done) if progress.unit == "bytes" else f"{progress.done:,} {progress.unit}"
        return Phase("waiting", f"{what}: {amount}")
    return Phase("waiting", what)


def _queued(ahead: int) -> str:
    if not ahead:
        return "Waiting for the models."
    return f"Waiting for {ahead} other {'run' if ahead == 1 else 'runs'}. The models serve one run at a time."


def _going_on(run: ShownRun) -> Phase:
    """The state of a run that is not shown to its end, whether or not the models have finished."""
    tokens, budget = len(run.state.text), run.settings.max_tokens
    sentence = pacing.sentence(
        Standing(
            len(run.state.rounds), run.rounds_computed, tokens, budget,
            paused=run.pace.paused, finished=run.phase == "finished", full=run.full,
            rounds_per_s=run.pace.rounds_per_s,
        )
    )  # fmt: skip
    return Phase("paused" if run.pace.paused else "running", sentence, min(1.0, tokens / budget))


def _ended(done: Done, quote: Quote) -> Phase:
    reason = words.FINISHES[done.finish_reason]
    if done.finish_reason == "stop_string" and done.stop_string:
        reason = f"the stop string “{quote(words.label(done.stop_string, 40))}” appeared"
    if done.finish_reason == "stopped":
        return Phase("stopped", f"Stopped by you after {done.total_tokens:,} tokens.")
    if done.total_tokens == 0 or not done.generated_text:
        return Phase("empty", f"There is no text: {reason}{_EMPTY[done.finish_reason]}")
    numbers = f"{done.total_tokens:,} tokens in {done.total_rounds:,} rounds, {done.total.wall_ms / 1000:,.1f} s."
    return Phase("finished", f"Finished: {reason}. {numbers}")


def announcement(run: ShownRun) -> tuple[str, str]:
    """What a screen reader reads out: the phase and its words. The phase decides whether they are read out at once.

    The words are not those on the page: a listener can read those there.
    """
    now = phase(run)
    match now.kind:
        case "finished":
            return now.kind, _complete(run)
        case "stopped":
            return now.kind, f"The run was stopped. It has {_amount(run)}."
        case "failed":
            return now.kind, f"The run ended with an error. It has {_amount(run)}."
        case "paused":
            # Each step, but not how far ahead the models are: that changes without the user.
            where = now.words.partition(". ")[0] + "."
            return where, where
        case "waiting" if run.phase == "queued":
            ahead = run.queue_position
            return "queued", f"Waiting: {ahead} {'run is' if ahead == 1 else 'runs are'} ahead of this one."
        case "waiting" | "running" if run.progress is not None:
            return f"{now.kind}: {run.progress.what}", wait(run.progress).words
    return now.kind, now.words


def _complete(run: ShownRun) -> str:
    done, factor = run.state.done, summary.speedup(run.state)
    assert done is not None
    speed = f"{factor.name} {factor.value}" + (f", {factor.note}" if factor.note else "")
    return f"The run is complete: {words.FINISHES[done.finish_reason]}. It has {_amount(run)}. {speed}."


def _amount(run: ShownRun) -> str:
    tokens, rounds = len(run.state.text), len(run.state.rounds)
    return f"{tokens:,} {'token' if tokens == 1 else 'tokens'} in {rounds:,} {'round' if rounds == 1 else 'rounds'}"


@dataclass(slots=True)
class Announcer:
    """Announces a new phase at once, and progress within a phase every few seconds: a listener cannot skim."""

    every_s: float = 5.0
    _kind: str = ""
    _words: str = ""
    _at: float = 0.0

    def say(self, kind: str, text: str, now: float) -> str:
        """The words to announce; `now` in seconds of a monotonic clock."""
        if kind != self._kind or now - self._at >= self.every_s:
            self._kind, self._words, self._at = kind, text, now
        return self._words
