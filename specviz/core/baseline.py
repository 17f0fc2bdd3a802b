"""The baseline: plain decoding by the same target, measured, never estimated from verify times.

A remote target has two. It can stream: one call, and the tokens as they come, which is what one would do without a
draft. And it can be called once per token, which is what speculative decoding does with its rounds made smallest.

A target behind a simulated network has the same two. As if it streamed: without the network, since a stream pays for
the way once, before its first token, which no rate counts. And one call per token, through the network.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from specviz.core.decoding import autoregressive
from specviz.core.errors import RemoteError, RunError, StoppedError
from specviz.core.events import Error, Metrics
from specviz.core.ports import Capabilities, Distant, OnProgress, Progress, Streaming, Target
from specviz.core.settings import Sampling, Settings

TOKENS = 32
#: One call per token costs a prompt each: a few tell what there is to know.
CALLS = 8


@dataclass(frozen=True, slots=True)
class Baseline:
    """Measured plain decoding.

    Attributes:
        tokens_per_second: without the first token, which holds the prefill; None when nothing else was decoded, and
            when the measurement was cut short. Of a remote target, streamed; where its stream cannot be counted, the
            same as `per_call_tps`. Behind a simulated network, without it.
        complete: whether all tokens were decoded; only then may it stand for other prompts.
        per_call_tps: of a remote target, and through a simulated network, with one call per token, the first left out.
    """

    tokens_per_second: float | None
    complete: bool
    per_call_tps: float | None = None


def measure(
    target: Target,
    prompt_ids: Sequence[int],
    settings: Settings,
    *,
    on_progress: OnProgress = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    tokens: int = TOKENS,
    calls: int = CALLS,
) -> Baseline:
    """Decode a few dozen tokens plainly, on this prompt, at these sampling settings, and time them.

    Goes on past stop tokens where it can: a short answer must not make a short measurement. Leaves the target's cache
    empty.

    Args:
        tokens: to decode plainly, or streamed.
        calls: to make of a target that can stream or is behind a simulated network, one per token.

    Raises:
        RunError: the target failed on the way.
    """
    if isinstance(target, Distant):
        near = measure(target.near, prompt_ids, settings, on_progress=on_progress, cancelled=cancelled, tokens=tokens)
        far = measure_calls(target, prompt_ids, settings, on_progress=on_progress, cancelled=cancelled, calls=calls)
        return _NOTHING if cancelled() else both(near, far)
    if not isinstance(target, Streaming):
        what = "Measuring plain decoding"
        return _plain(target, prompt_ids, settings, on_progress, cancelled, tokens, what)
    room = target.capabilities.max_context - len(prompt_ids)
    streamed = _streamed(target, prompt_ids, settings.sampling, on_progress, cancelled, min(tokens + 1, room), tokens)
    each = measure_calls(target, prompt_ids, settings, on_progress=on_progress, cancelled=cancelled, calls=calls)
    if cancelled():
        return _NOTHING
    per_call = each.tokens_per_second
    if streamed.tokens_per_second is None:
        return Baseline(per_call, each.complete, per_call)
    return Baseline(streamed.tokens_per_second, streamed.complete and each.complete, per_call)


def measure_calls(
    target: Target,
    prompt_ids: Sequence[int],
    settings: Settings,
    *,
    on_progress: OnProgress = lambda _: None,
    cancelled: Callable[[], bool] = lambda: False,
    calls: int = CALLS,
) -> Baseline:
    """A few calls to a target that is some way off, for one token each.

    Raises:
        RunError: the target failed on the way.
    """
    return _plain(target, prompt_ids, settings, on_progress, cancelled, calls, "Measuring one call per token")


def both(near: Baseline, far: Baseline) -> Baseline:
    """The baselines behind a simulated network: plain decoding without it, and one call per token through it."""
    return Baseline(near.tokens_per_second, near.complete and far.complete, far.tokens_per_second)


def _plain(
    target: Target,
    prompt_ids: Sequence[int],
    settings: Settings,
    on_progress: OnProgress,
    cancelled: Callable[[], bool],
    tokens: int,
    what: str,
) -> Baseline:
    """One token a round, as the loop decodes without a draft."""
    target.reset()
    limits = target.capabilities
    if not isinstance(target, Streaming):
        # To go on behind the end of an answer is nothing that every server survives.
        limits = dataclasses.replace(limits, stop_ids=frozenset())
    plain = dataclasses.replace(settings, draft="none", max_tokens=tokens + 1, stop=())
    walls: list[float] = []
    on_progress(Progress(what, 0, tokens, "tokens"))
    events = autoregressive(
        _WithLimits(target, limits), prompt_ids, plain, np.random.default_rng(settings.seed), cancelled=cancelled
    )
    for event in events:
        if isinstance(event, Error):
            raise RunError(f"The baseline failed: {event.message}", event.remedy)
        if isinstance(event, Metrics):
            walls.append(event.split.wall_ms)
            on_progress(Progress(what, min(len(walls), tokens), tokens, "tokens"))
    target.reset()
    steady = walls[1:]
    if not steady or cancelled():
        return Baseline(None, complete=False)
    return Baseline(len(steady) / (sum(steady) / 1000), complete=len(steady) == tokens)


def _streamed(
    target: Streaming,
    prompt_ids: Sequence[int],
    sampling: Sampling,
    on_progress: OnProgress,
    cancelled: Callable[[], bool],
    budget: int,
    tokens: int,
) -> Baseline:
    """A server that cannot stream, or does not say how many tokens it sends, has no such baseline."""
    what = "Measuring plain decoding, streamed"
    on_progress(Progress(what, 0, tokens, "tokens"))
    found = streamed(
        target, prompt_ids, sampling, budget, cancelled,
        lambda count: on_progress(Progress(what, min(count, tokens), tokens, "tokens")),
    )  # fmt: skip
    if found is None:
        return _NOTHING
    behind, seconds = found
    return Baseline(behind / seconds, complete=behind >= tokens)


def streamed(
    target: Streaming,
    prompt_ids: Sequence[int],
    sampling: Sampling,
    budget: int,
    cancelled: Callable[[], bool] = lambda: False,
    on_tokens: Callable[[int], None] = lambda _: None,
) -> tuple[int, float] | None:
    """Tokens behind the first piece of one streamed answer, and the seconds since it came.

    Args:
        budget: most tokens of the answer. on_tokens: told how many have come, as far as that is known.

    Returns:
        None when it was cancelled, when the server cannot stream, and when it does not say how many tokens it sends.
    """
    came: list[tuple[float, int | None]] = []
    try:
        with closing(target.stream_plain(prompt_ids, sampling, budget)) as pieces:
            for piece in pieces:
                if cancelled():
                    return None
                came.append(piece)
                on_tokens(_count(came))
    except (RemoteError, StoppedError):
        return None
    counted = [(at, count) for at, count in came if count]
    if counted and len(counted) < len(came):
        counted = _by_sum([at for at, count in came if count is None], came[-1][1])
    behind = sum(count for _, count in counted[1:])
    if not behind or (seconds := counted[-1][0] - counted[0][0]) <= 0:
        return None
    return behind, seconds


_NOTHING = Baseline(None, complete=False)


def _count(came: Sequence[tuple[float, int | None]]) -> int:
    """Tokens so far; one a piece, as servers mostly send them, while that is not said."""
    return sum(1 if count is None else count for _, count in came)


def _by_sum(times: Sequence[float], tokens: int | None) -> list[tuple[float, int]]:
    """Pieces of which only the sum is known: the first brought one token, the others are between it and the last."""
    if tokens is None or len(times) < 2:
        return []
    return [(times[0], 1), (times[-1], tokens - 1)]


class Measure(Protocol):
    """`measure` or `measure_calls`."""

    def __call__(
        self,
        target: Target,
        prompt_ids: Sequence[int],
        settings: Settings,
        *,
        on_progress: OnProgress,
        cancelled: Callable[[], bool],
    ) -> Baseline:
        """Decode plainly, and time it."""
        ...


Key = tuple[str, str, Sampling, tuple[float, float]]


def key(target_name: str, sampling: Sampling, where: str = "", network: tuple[float, float] = (0.0, 0.0)) -> Key:
    """What a measured baseline may be reused for in one session: the same target at the same sampling settings.

    Args:
        where: the address of a remote target.
        network: round trip and jitter of a simulated network that was measured through, in ms.
    """
    return target_name, where, sampling, network


class _WithLimits:
    """A target with other limits and the same behaviour."""

    def __init__(self, target: Target, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.name, self.tokenizer = target.name, target.tokenizer
        self.guarantee, self.verify, self.reset = target.guarantee, target.verify, target.reset
