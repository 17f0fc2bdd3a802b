"""The baseline: plain decoding by the same target, measured, never estimated from verify times."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from specviz.decoding import autoregressive
from specviz.errors import RunError
from specviz.events import Error, Metrics
from specviz.ports import Capabilities, OnProgress, Progress, Target
from specviz.settings import Sampling, Settings

TOKENS = 32


@dataclass(frozen=True, slots=True)
class Baseline:
    """Measured plain decoding.

    Attributes:
        tokens_per_second: without the first token, which holds the prefill; None when nothing else was decoded, and
            when the measurement was cut short.
        complete: whether all tokens were decoded; only then may it stand for other prompts.
    """

    tokens_per_second: float | None
    complete: bool


def measure(
    target: Target,
    prompt_ids: Sequence[int],
    settings: Settings,
    *,
    on_progress: OnProgress = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    tokens: int = TOKENS,
) -> Baseline:
    """Decode a few dozen tokens plainly, on this prompt, at these sampling settings, and time them.

    Goes on past stop tokens: a short answer must not make a short measurement. Leaves the target's cache empty.

    Raises:
        RunError: the target failed on the way.
    """
    target.reset()
    endless = dataclasses.replace(target.capabilities, stop_ids=frozenset())
    plain = dataclasses.replace(settings, draft="none", max_tokens=tokens + 1, stop=())
    walls: list[float] = []
    on_progress(Progress("Measuring plain decoding", 0, tokens, "tokens"))
    events = autoregressive(
        _WithLimits(target, endless), prompt_ids, plain, np.random.default_rng(settings.seed), cancelled=cancelled
    )
    for event in events:
        if isinstance(event, Error):
            raise RunError(f"The baseline failed: {event.message}", event.remedy)
        if isinstance(event, Metrics):
            walls.append(event.split.wall_ms)
            on_progress(Progress("Measuring plain decoding", min(len(walls), tokens), tokens, "tokens"))
    target.reset()
    steady = walls[1:]
    if not steady or cancelled():
        return Baseline(None, complete=False)
    return Baseline(len(steady) / (sum(steady) / 1000), complete=len(steady) == tokens)


def key(target_name: str, sampling: Sampling) -> tuple[str, Sampling]:
    """What a measured baseline may be reused for in one session: the same target at the same sampling settings."""
    return target_name, sampling


class _WithLimits:
    """A target with other limits and the same behaviour."""

    def __init__(self, target: Target, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.name, self.tokenizer = target.name, target.tokenizer
        self.guarantee, self.verify, self.reset = target.guarantee, target.verify, target.reset
