"""Trials: a target or a draft on its own for a few tokens. Does it answer, how fast, and with what?"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from specviz.core import baseline
from specviz.core.decoding import autoregressive
from specviz.core.errors import RunError, StoppedError
from specviz.core.events import Done, Error, Guarantee, Metrics, Way
from specviz.core.ports import Drafter, OnProgress, Progress, Streaming, Target
from specviz.core.prompt import prepare
from specviz.core.settings import Settings

Tried = Literal["target", "draft"]

TOKENS = 8
#: Streamed, to see the speed; one call per token would say more about the network than about the server.
STREAMED = 16
TARGET_PROMPT = "Say hello in one short sentence."
#: Without a chat template, so that the text repeats right up to its end: lookup drafts where it does.
DRAFT_PROMPT = "One, two, three, four, five. One, two, three, four, five. One, two, three,"


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What came of a trial.

    Attributes:
        name: of the target or the draft.
        latency_ms: until the first token of a short prompt. tokens_per_second: of those behind it; both None where
            there was nothing to time.
        text: the first words.
        note: what kept it from giving more, in words for a person; mostly empty.
        way, guarantee: how the target would verify, and what could be promised. Of a target alone.
        findings: what a probe found out about a remote target's server, as `targets.remote.values.Findings`.
    """

    what: Tried
    name: str
    latency_ms: float | None
    tokens_per_second: float | None
    text: str
    note: str = ""
    way: Way = "rows"
    guarantee: Guarantee | None = None
    findings: Any = None


def try_target(
    target: Target,
    settings: Settings,
    on_progress: OnProgress = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> TrialOutcome:
    """Let a target say hello.

    Raises:
        StoppedError: it was cancelled.
        SpecvizError: the target failed.
    """
    what = "Asking the target for its first words"
    on_progress(Progress(what, 0, TOKENS, "tokens"))
    plain = dataclasses.replace(settings, draft="none", max_tokens=TOKENS, stop=())
    text, ids = prepare(target, plain, TARGET_PROMPT)
    target.reset()
    walls: list[float] = []
    written = ""
    rng = np.random.default_rng(settings.seed)
    for event in autoregressive(target, ids, plain, rng, prompt_text=text, cancelled=cancelled):
        if isinstance(event, Error):
            raise RunError(event.message, event.remedy)
        if isinstance(event, Metrics):
            walls.append(event.split.wall_ms)
            on_progress(Progress(what, len(walls), TOKENS, "tokens"))
        if isinstance(event, Done):
            written = event.generated_text
    _refuse_stopped(cancelled)
    steady = walls[1:]
    speed = len(steady) / (sum(steady) / 1000) if sum(steady) > 0 else None
    if isinstance(target, Streaming):
        streamed = baseline.measure(
            target, ids, plain, on_progress=on_progress, cancelled=cancelled, tokens=STREAMED, calls=1
        )
        speed = streamed.tokens_per_second or speed
    _refuse_stopped(cancelled)
    target.reset()
    return TrialOutcome(
        "target",
        target.name,
        walls[0] if walls else None,
        speed,
        written,
        way=target.capabilities.way,
        guarantee=target.guarantee(settings.sampling, settings.acceptance_rule),
        findings=getattr(target, "findings", None),
    )


def try_draft(
    drafter: Drafter,
    target: Target,
    settings: Settings,
    on_progress: OnProgress = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> TrialOutcome:
    """Let a drafter go on with a text that repeats itself.

    Raises:
        StoppedError: it was cancelled.
        SpecvizError: the drafter failed.
    """
    on_progress(Progress("Asking the draft to go on with a text"))
    raw = dataclasses.replace(settings, raw=True, system="")
    _, ids = prepare(target, raw, DRAFT_PROMPT)
    drafter.reset()
    rng = np.random.default_rng(settings.seed)
    began = time.perf_counter()
    drafter.propose(ids, 1, settings.sampling, rng)
    first = time.perf_counter()
    _refuse_stopped(cancelled)
    proposal = drafter.propose(ids, TOKENS, settings.sampling, rng)[0]
    seconds = time.perf_counter() - first
    drafter.reset()
    count = len(proposal.token_ids)
    note = proposal.note or ("" if count else "It drafted nothing for a text that repeats itself.")
    return TrialOutcome(
        "draft",
        drafter.name,
        (first - began) * 1000 if count else None,
        count / seconds if count and seconds > 0 else None,
        target.tokenizer.decode(proposal.token_ids),
        note,
    )


def _refuse_stopped(cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise StoppedError("The test was stopped.")
