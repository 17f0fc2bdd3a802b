"""The cards and badges of a run, as data: name, value, note and tone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specviz.core.events import Metrics
from specviz.core.guarantee import Guarantee, GuaranteeKind
from specviz.core.settings import Settings
from specviz.core.tally import WINDOW
from specviz.record.state import Baseline, RunState
from specviz.views import words
from specviz.views.billing import billed_in_all, billed_parts
from specviz.views.speed import is_remote, is_simulated, speed_word, speeds

Tone = Literal["good", "bad", "neutral"]
BadgeColour = Literal["green", "blue", "red", "gray"]

#: Baselines that are shown beside one call per token.
_BESIDE_CALLS: tuple[Baseline, ...] = ("streaming", "plain decoding without the network")

_AS_IF_STREAMED = (
    " A streaming server has the same rate: it waits for one round trip before its first token, which is left out."
)

BADGES: dict[GuaranteeKind, BadgeColour] = {"EXACT": "green", "BOUNDED": "blue", "LOSSY": "red", "UNKNOWN": "gray"}


@dataclass(frozen=True, slots=True)
class Figure:
    """One number for a card.

    Attributes:
        name: precise enough to be quoted. value: with unit, or n/a. note: what the value means; may be empty.
        help: how it is counted.
    """

    name: str
    value: str
    note: str
    help: str
    tone: Tone = "neutral"


def badge(guarantee: Guarantee | None) -> tuple[BadgeColour, str]:
    """Colour and label of the guarantee."""
    return ("gray", "UNKNOWN") if guarantee is None else (BADGES[guarantee.kind], str(guarantee))


def rule_in_force(settings: Settings, state: RunState) -> str:
    """The rule, with a note where the server draws every token itself, so that draft tokens are matched with draws."""
    rule = settings.rule + (f" τ = {settings.tau:g}" if settings.rule == "threshold" else "")
    own_draws = state.way_of(-1) in ("prefixes", "generating")
    samples = settings.temperature > 0 and settings.rule in ("probabilistic", "deterministic")
    return f"{rule} (matched with the server's draws)" if own_draws and samples else rule


def ways(state: RunState) -> str:
    """How a completions target verified, in order where that changed; empty for other targets."""
    return ", then ".join(words.WAYS[way] for way in state.ways)


def engine(state: RunState) -> str:
    """What ran the target in this process, its number format, and why it is not the usual engine; empty elsewhere."""
    started = state.started
    if started is None or not started.model_file:
        return ""
    said = f"{started.engine}, {started.precision}"
    return f"{said}. {started.engine_note}" if started.engine_note else said


def network(settings: Settings, state: RunState) -> str:
    """The network that was simulated for a run, or will be; empty for none."""
    of = state.started or settings
    delay = words.network(of.simulated_rtt_ms, of.simulated_jitter_ms)
    return f"simulated network: {delay}" if delay else ""


def speedup(state: RunState) -> Figure:
    """The speed-up against the measured baseline; slower is said in words."""
    plain = state.baseline
    tone, note = _compared(speeds(state).speedup, plain)
    return Figure(
        "Speed-up",
        _times(speeds(state).speedup),
        note,
        f"Tokens per second of this run divided by those of {plain} by the same target with the same settings, "
        f"measured {_measured_when(state)}. Both leave out the first round, which reads the prompt. Never estimated."
        + (_AS_IF_STREAMED if is_simulated(state) else ""),
        tone,
    )


def speedup_per_call(state: RunState) -> Figure:
    """The speed-up against a target that is called once per token."""
    factor = speeds(state).speedup_per_call
    tone, note = _compared(factor, "one call per token")
    return Figure(
        "Against single calls",
        _times(factor),
        note,
        "Tokens per second of this run divided by those of one call per token"
        f"{' through the simulated network' if is_simulated(state) else ' to the server'}, measured in this session. "
        "A server that can stream does not have to be called this way.",
        tone,
    )


def billed(state: RunState) -> Figure:
    """Tokens that the server counted, and how many calls a round took."""
    sums, total = state.sums, billed_in_all(state)
    partly = "at least " if sums.unbilled else ""
    calls = sums.requests / sums.asking if sums.asking else None
    return Figure(
        "Billed tokens",
        words.NOT_KNOWN if total is None else f"{partly}{total:,}",
        "not reported by the server" if total is None else billed_parts(state),
        "What the server counted for this run, without its baselines: a batch of prefixes bills the prompt once per "
        f"prefix. Calls per round: {words.number(calls)}.",
    )


def _measured_when(state: RunState) -> str:
    """When the baseline was measured; one of this process was found the same again at the start of the run."""
    age_s = state.started.baseline_age_s if state.started else None
    if age_s is None:
        return "in this session"
    if age_s < 1:
        return "for this run"
    age = f"{age_s:.0f} seconds" if age_s < 120 else f"{age_s / 60:.0f} minutes"
    checked = "" if is_remote(state) else ", and found as fast again at its start"
    return f"{age} before this run{checked}"


def _times(factor: float | None) -> str:
    return words.NOT_KNOWN if factor is None else words.number(factor) + " ×"


def _compared(factor: float | None, other: str) -> tuple[Tone, str]:
    if factor is None:
        return "neutral", ""
    word = speed_word(factor)
    tones: dict[str, Tone] = {"slower": "bad", "as fast": "neutral", "faster": "good"}
    return tones[word], f"{word} {'as' if word == 'as fast' else 'than'} {other}"


def numbers(state: RunState, settings: Settings) -> list[Figure]:
    """The cards of a run: speed and, for a server, billing; then the three that every run has."""
    latest = state.latest
    remote = is_remote(state)
    return [
        speedup(state),
        *([speedup_per_call(state)] if state.baseline in _BESIDE_CALLS else []),
        *([billed(state)] if remote else []),
        Figure(
            "Accepted per round",
            words.number(latest.accepted_per_round if latest else None),
            f"of {'at most ' if settings.min_confidence else ''}K = {settings.k} drafted",
            f"Mean over all rounds, without the resampled or bonus token. {_rates(latest)}",
        ),
        Figure(
            "Tokens per round",
            words.number(latest.tokens_per_round if latest else None),
            f"at most {settings.k + 1}",
            "Mean over all rounds: accepted tokens plus the resampled or bonus token.",
        ),
        Figure(
            "Output",
            f"{len(state.text):,}",
            f"tokens in {len(state.rounds):,} {'round' if len(state.rounds) == 1 else 'rounds'}",
            f"Tokens emitted so far; the budget is {settings.max_tokens:,}.",
        ),
    ]


def _rates(latest: Metrics | None) -> str:
    overall, rolling = (latest.overall_acceptance_rate, latest.acceptance_rate) if latest else (None, None)
    return (
        f"Acceptance rate, accepted of the tested draft tokens: {words.percent(overall)} over the whole run, "
        f"{words.percent(rolling)} over the last {WINDOW} rounds."
    )


def green_limit(k: int) -> str:
    """How many tokens can be green at most: a reader who expects all of them would distrust the colours."""
    return (
        f"With K = {k}, at most {k} of every {k + 1} tokens can be green: each round ends with one token that the "
        "target adds itself."
    )
