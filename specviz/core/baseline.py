"""The baseline: plain decoding by the same target, measured, never estimated from verify times.

A completions target has two baselines. Streaming: one call that returns all tokens, which is how the server is used
without speculation. One call per token: what speculative decoding costs in rounds without a draft.

A target behind a simulated network also has two. The first is measured without the network and stands for streaming: a
stream waits for one round trip before its first token, and rates leave the first token out. The second is one call per
token through the network.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from specviz.core.decoding import PlainSpeeds, autoregressive
from specviz.core.errors import RemoteError, RunError, StoppedError
from specviz.core.events import BaselineKind, Error, Metrics, VerifyResult
from specviz.core.pair import Pair
from specviz.core.plain_output import PlainOutput, digest
from specviz.core.ports import Arrival, Capabilities, Streaming, Target, without_network
from specviz.core.rounds import Explain
from specviz.core.settings import Sampling, Settings
from specviz.core.wait import Progress, Wait

TOKENS = 32
#: A server bills every call for the whole prompt, so only a few calls are made.
CALLS = 8
#: How long a baseline is kept, in seconds.
OLDEST_S = 600.0
#: Tokens of the check of a baseline that is kept, and how many times faster or slower they may be.
CHECKED, SAME_SPEED = 5, 1.25


@dataclass(frozen=True, slots=True)
class Baseline:
    """Measured plain decoding.

    Attributes:
        tokens_per_second: without the first token, whose time includes the prefill; None when no other token was
            decoded or the measurement was cancelled. For a completions target it is streamed; when the tokens of its
            stream cannot be counted, it equals `per_call_tps`. Behind a simulated network, measured without it.
        complete: whether all tokens were decoded; only then may it be used for other prompts.
        per_call_tps: with one call per token, without the first; only for a completions target or a simulated
            network.
        kind: how `tokens_per_second` was measured.
        output: what was written, at temperature 0.
        age_s: how long ago it was measured.
    """

    tokens_per_second: float | None
    complete: bool
    per_call_tps: float | None = None
    kind: BaselineKind = "separate_run"
    output: PlainOutput | None = field(default=None, compare=False)
    age_s: float = 0.0

    @property
    def speeds(self) -> PlainSpeeds:
        """The values that the loop records."""
        if self.tokens_per_second is None:
            return PlainSpeeds(None, self.per_call_tps, output=self.output)
        return PlainSpeeds(self.tokens_per_second, self.per_call_tps, self.kind, self.age_s, self.output)


def measure(
    target: Target,
    prompt_ids: Sequence[int],
    settings: Settings,
    wait: Wait = Wait(),
    *,
    tokens: int = TOKENS,
    calls: int = CALLS,
    explain: Explain = 1,
) -> Baseline:
    """Decode `tokens` tokens plainly, on this prompt, at these sampling settings, and time them.

    Continues past stop tokens where possible, so that a short answer does not shorten the measurement. Leaves the
    target's cache empty.

    Args:
        wait: receives progress after every token, and is checked for cancellation; a cancelled measurement is empty.
        tokens: number of tokens to decode plainly, or to stream.
        calls: number of single-token calls, for a target that can stream or is behind a simulated network.
        explain: as in the run that is compared with it.

    Raises:
        RunError: the target failed during the measurement.
    """
    if (near := without_network(target)) is not target:
        plain = measure(near, prompt_ids, settings, wait, tokens=tokens, explain=explain)
        per_call = measure_calls(target, prompt_ids, settings, wait, calls=calls)
        return _NOTHING if wait.cancelled() else both(plain, per_call)
    if not isinstance(target, Streaming):
        return _plain(target, prompt_ids, settings, wait, tokens, "Measuring plain decoding", explain)
    room = target.capabilities.max_context - len(prompt_ids)
    streamed = _streamed(target, prompt_ids, settings.sampling, wait, min(tokens + 1, room), tokens)
    each = measure_calls(target, prompt_ids, settings, wait, calls=calls)
    if wait.cancelled():
        return _NOTHING
    per_call_tps = each.tokens_per_second
    if streamed.tokens_per_second is None:
        return Baseline(per_call_tps, each.complete, per_call_tps, "per_call", each.output)
    complete = streamed.complete and each.complete
    return Baseline(streamed.tokens_per_second, complete, per_call_tps, "streaming", streamed.output)


def measure_calls(
    target: Target, prompt_ids: Sequence[int], settings: Settings, wait: Wait = Wait(), *, calls: int = CALLS
) -> Baseline:
    """A few calls for one token each, to a completions target or through a simulated network.

    Raises:
        RunError: the target failed during the measurement.
    """
    return _plain(target, prompt_ids, settings, wait, calls, "Measuring one call per token")


def both(near: Baseline, far: Baseline) -> Baseline:
    """The baselines behind a simulated network: plain decoding without it, and one call per token through it."""
    complete = near.complete and far.complete
    return Baseline(near.tokens_per_second, complete, far.tokens_per_second, output=near.output, age_s=near.age_s)


def _plain(
    target: Target,
    prompt_ids: Sequence[int],
    settings: Settings,
    wait: Wait,
    tokens: int,
    what: str,
    explain: Explain = 1,
) -> Baseline:
    """One token per round, as the loop decodes without a draft."""
    target.reset()
    limits = target.capabilities
    if not isinstance(target, Streaming):
        # Only in-process targets continue past a stop token: some servers fail when they must.
        limits = dataclasses.replace(limits, stop_ids=frozenset())
    plain = dataclasses.replace(settings, draft="none", max_tokens=tokens + 1, stop=())
    walls: list[float] = []
    output: list[int] = []
    wait.on_progress(Progress(what, 0, tokens, "tokens"))
    events = autoregressive(_WithLimits(target, limits), prompt_ids, plain, explain=explain, cancelled=wait.cancelled)
    for event in events:
        if isinstance(event, Error):
            raise RunError(f"The baseline failed: {event.message}", event.remedy)
        if isinstance(event, VerifyResult) and event.final_token_id is not None:
            output.append(event.final_token_id)
        if isinstance(event, Metrics):
            walls.append(event.split.wall_ms)
            wait.on_progress(Progress(what, min(len(walls), tokens), tokens, "tokens"))
    target.reset()
    steady = walls[1:]
    if not steady or wait.cancelled():
        return Baseline(None, complete=False)
    written = PlainOutput(digest(prompt_ids), tuple(output)) if settings.temperature == 0 else None
    return Baseline(len(steady) / (sum(steady) / 1000), complete=len(steady) == tokens, output=written)


def _streamed(
    target: Streaming,
    prompt_ids: Sequence[int],
    sampling: Sampling,
    wait: Wait,
    budget: int,
    tokens: int,
) -> Baseline:
    """The streaming baseline; empty when the server cannot stream or does not report how many tokens it sends."""
    what = "Measuring plain decoding, streamed"
    wait.on_progress(Progress(what, 0, tokens, "tokens"))
    found = streamed(
        target, prompt_ids, sampling, budget, wait.cancelled,
        lambda count: wait.on_progress(Progress(what, min(count, tokens), tokens, "tokens")),
    )  # fmt: skip
    if found is None:
        return _NOTHING
    behind, seconds, text = found
    written = PlainOutput(digest(prompt_ids), None, text) if sampling.temperature == 0 else None
    return Baseline(behind / seconds, complete=behind >= tokens, output=written)


def streamed(
    target: Streaming,
    prompt_ids: Sequence[int],
    sampling: Sampling,
    budget: int,
    cancelled: Callable[[], bool] = lambda: False,
    on_tokens: Callable[[int], None] = lambda _: None,
) -> tuple[int, float, str] | None:
    """Tokens after the first chunk of one streamed answer, the seconds from that chunk to the last, and the text.

    Args:
        budget: maximum tokens of the answer. on_tokens: receives the number of tokens so far, as far as it is known.

    Returns:
        None when it was cancelled, the server cannot stream, or it does not report how many tokens it sends.
    """
    came: list[Arrival] = []
    try:
        with closing(target.stream_plain(prompt_ids, sampling, budget)) as pieces:
            for piece in pieces:
                if cancelled():
                    return None
                came.append(piece)
                on_tokens(_count(came))
    except (RemoteError, StoppedError):
        return None
    counted = [(piece.at, piece.tokens) for piece in came if piece.tokens]
    if counted and len(counted) < len(came):
        counted = _by_sum([piece.at for piece in came if piece.tokens is None], came[-1].tokens)
    behind = sum(count for _, count in counted[1:])
    if not behind or (seconds := counted[-1][0] - counted[0][0]) <= 0:
        return None
    return behind, seconds, "".join(piece.text for piece in came)


_NOTHING = Baseline(None, complete=False)


def _count(came: Sequence[Arrival]) -> int:
    """Tokens so far; a chunk of unknown size counts as one token, which is what most servers send."""
    return sum(1 if piece.tokens is None else piece.tokens for piece in came)


def _by_sum(times: Sequence[float], tokens: int | None) -> list[tuple[float, int]]:
    """Chunks of which only the total is known: the first is taken as one token, the rest arrived by the last chunk."""
    if tokens is None or len(times) < 2:
        return []
    return [(times[0], 1), (times[-1], tokens - 1)]


class Baselines:
    """Cache of measured baselines, so that none is measured twice in one session under the same conditions.

    A baseline is reused for other prompts of the same target at the same sampling settings, for `OLDEST_S`. A target in
    this process is first checked on the prompt: a machine that was busy then or is busy now, or a context of another
    length, shows in a few tokens, and then the baseline is measured again.

    Args:
        clock: the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: dict[tuple[object, ...], tuple[Baseline, float]] = {}
        self._clock = clock

    def of(
        self, pair: Pair, prompt_ids: Sequence[int], settings: Settings, wait: Wait, explain: Explain = 1
    ) -> Baseline:
        """The baseline of a pair's target, measured on this prompt if there is none of the same conditions.

        Raises:
            RunError: the target failed during the measurement.
        """
        target, limits = pair.target, pair.target.capabilities
        near = without_network(target)
        key = (target.name, pair.where, limits.engine, limits.model_file, settings.sampling)
        plain = self._still(key)
        if plain is not None and not isinstance(near, Streaming):
            now = check(near, prompt_ids, settings, wait, explain)
            if plain.output is None or not plain.output.follows(prompt_ids):
                plain = dataclasses.replace(plain, output=now.output)
            plain = plain if _as_fast(now, plain) else None
        if plain is None:
            # What was measured through a network is older, and of other conditions too.
            self._kept = {other: kept for other, kept in self._kept.items() if other[: len(key)] != key}
            plain = self._measured(key, measure(near, prompt_ids, settings, wait, explain=explain))
        if near is target:
            return plain
        # Cached separately, so that the measurement without the network is reused for every simulated network.
        far = (*key, limits.simulated_rtt_ms, limits.simulated_jitter_ms)
        per_call = self._still(far) or self._measured(far, measure_calls(target, prompt_ids, settings, wait))
        return both(plain, per_call)

    def _still(self, key: tuple[object, ...]) -> Baseline | None:
        """What is kept and not too old, with its age."""
        found, measured_at = self._kept.get(key, (None, 0.0))
        age_s = self._clock() - measured_at
        return None if found is None or age_s > OLDEST_S else dataclasses.replace(found, age_s=age_s)

    def _measured(self, key: tuple[object, ...], found: Baseline) -> Baseline:
        if found.complete:
            # One that was cancelled, or that filled the context, is not valid for other prompts.
            self._kept[key] = found, self._clock()
        return found


def check(target: Target, prompt_ids: Sequence[int], settings: Settings, wait: Wait, explain: Explain = 1) -> Baseline:
    """A few tokens of plain decoding now, to compare with a baseline that is kept.

    Raises:
        RunError: the target failed.
    """
    return _plain(target, prompt_ids, settings, wait, CHECKED, "Checking plain decoding", explain)


def _as_fast(now: Baseline, kept: Baseline) -> bool:
    one, other = now.tokens_per_second, kept.tokens_per_second
    return one is not None and other is not None and 1 / SAME_SPEED < one / other < SAME_SPEED


class _WithLimits:
    """A target with other capabilities and the same behaviour."""

    def __init__(self, target: Target, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.name, self.tokenizer = target.name, target.tokenizer
        self.guarantee, self.verify, self.reset = target.guarantee, target.verify, target.reset
