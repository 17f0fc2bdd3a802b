"""Trials: run a target or a draft alone for a few tokens, to see whether it works, its speed and its text."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any, Literal

from specviz.core import baseline, session
from specviz.core.errors import StoppedError
from specviz.core.events import Way
from specviz.core.guarantee import Guarantee
from specviz.core.noise import Noise
from specviz.core.ports import Drafter, Streaming, Target
from specviz.core.prompt import prepare
from specviz.core.settings import Settings
from specviz.core.wait import Progress, Wait

Tried = Literal["target", "draft"]

TOKENS = 8
#: Number of streamed tokens for the speed: with one call per token the network would dominate the time.
STREAMED = 16
TARGET_PROMPT = "Say hello in one short sentence."
#: Used without a chat template, so that the text repeats itself up to its end and n-gram lookup finds a match.
DRAFT_PROMPT = "One, two, three, four, five. One, two, three, four, five. One, two, three,"


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """The outcome of a trial.

    Attributes:
        name: of the target or the draft.
        latency_ms: until the first token of a short prompt. tokens_per_second: of the tokens after it. Both are None
            when there was nothing to time.
        text: the generated text.
        note: why it gave fewer tokens, as a sentence for the user; usually empty.
        way, guarantee: how the target verifies, and its guarantee; None for a draft.
        findings: results of the probe of a completions target's server, see `targets.completions.values.Findings`.
    """

    what: Tried
    name: str
    latency_ms: float | None
    tokens_per_second: float | None
    text: str
    note: str = ""
    way: Way | None = None
    guarantee: Guarantee | None = None
    findings: Any = None


def try_target(
    target: Target,
    settings: Settings,
    wait: Wait = Wait(),
) -> TrialOutcome:
    """Generate a few tokens with a target.

    Raises:
        StoppedError: the trial was cancelled.
        SpecvizError: the target failed.
    """
    what = "Asking the target for its first words"
    wait.on_progress(Progress(what, 0, TOKENS, "tokens"))
    plain = dataclasses.replace(settings, draft="none", max_tokens=TOKENS, stop=())
    text, ids = prepare(target, plain, TARGET_PROMPT)
    events = session.run_plain(target, session.EncodedPrompt(ids, text), plain, wait=wait)
    done, rounds = session.finished(events, what, TOKENS, wait)
    walls = [m.split.wall_ms for m in rounds]
    steady = walls[1:]
    speed = len(steady) / (sum(steady) / 1000) if sum(steady) > 0 else None
    if isinstance(target, Streaming):
        streamed = baseline.measure(target, ids, plain, wait, tokens=STREAMED, calls=1)
        speed = streamed.tokens_per_second or speed
    _refuse_stopped(wait)
    target.reset()
    return TrialOutcome(
        "target",
        target.name,
        walls[0] if walls else None,
        speed,
        done.generated_text,
        way=target.capabilities.way,
        guarantee=target.guarantee(settings.sampling, settings.acceptance_rule),
        findings=getattr(target, "findings", None),
    )


def try_draft(
    drafter: Drafter,
    target: Target,
    settings: Settings,
    wait: Wait = Wait(),
) -> TrialOutcome:
    """Let a drafter continue a text that repeats itself.

    Raises:
        StoppedError: the trial was cancelled.
        SpecvizError: the drafter failed.
    """
    wait.on_progress(Progress("Asking the draft to continue a text"))
    raw = dataclasses.replace(settings, raw=True, system="")
    _, ids = prepare(target, raw, DRAFT_PROMPT)
    drafter.reset()
    began = time.perf_counter()
    drafter.propose(ids, 1, settings.sampling, Noise(settings.seed, 0))
    first = time.perf_counter()
    _refuse_stopped(wait)
    draft = drafter.propose(ids, TOKENS, settings.sampling, Noise(settings.seed, 1))
    seconds = time.perf_counter() - first
    drafter.reset()
    count = len(draft.first)
    note = draft.note or ("" if count else "It drafted nothing for a text that repeats itself.")
    return TrialOutcome(
        "draft",
        drafter.name,
        (first - began) * 1000 if count else None,
        count / seconds if count and seconds > 0 else None,
        target.tokenizer.decode(draft.first.token_ids),
        note,
    )


def _refuse_stopped(wait: Wait) -> None:
    if wait.cancelled():
        raise StoppedError("The test was stopped.")
