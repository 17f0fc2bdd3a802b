"""The numbers and badges beside a run, as data: what they are called, what they say, how they are to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specviz.events import Guarantee, GuaranteeKind
from specviz.metrics import RunState
from specviz.settings import Settings
from specviz.views import words

Tone = Literal["good", "bad", "neutral"]
BadgeColour = Literal["green", "blue", "red", "gray"]

BADGES: dict[GuaranteeKind, BadgeColour] = {"EXACT": "green", "BOUNDED": "blue", "LOSSY": "red", "UNKNOWN": "gray"}


@dataclass(frozen=True, slots=True)
class Figure:
    """One number for a card.

    Attributes:
        name: precise enough to be quoted. value: with unit, or n/a. note: what it amounts to; empty for nothing.
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


def speedup(state: RunState) -> Figure:
    """The speed-up against the measured baseline; slower is said in words."""
    last = state.done or state.latest
    factor = last.speedup if last else None
    tone: Tone = "neutral"
    note = ""
    if factor is not None:
        tone, note = ("bad", "slower than plain decoding") if factor < 1 else ("good", "faster than plain decoding")
    return Figure(
        "Speed-up",
        words.NOT_KNOWN if factor is None else words.number(factor) + " ×",
        note,
        "Tokens per second of this run over those of plain decoding by the same target with the same settings, "
        "measured in this session. Both leave out the first round, which reads the prompt. Never estimated.",
        tone,
    )


def numbers(state: RunState, settings: Settings) -> list[Figure]:
    """The cards of a run, most wanted first."""
    latest = state.latest
    return [
        speedup(state),
        Figure(
            "Accepted per round",
            words.number(latest.accepted_per_round if latest else None),
            f"of {'at most ' if settings.min_confidence else ''}K = {settings.k} drafted",
            "Mean over all rounds, without the token that the target adds itself.",
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
            f"tokens in {len(state.rounds):,} rounds",
            f"Tokens emitted so far; the budget is {settings.max_tokens:,}.",
        ),
    ]


def green_limit(k: int) -> str:
    """How much of the text can be green at all: a reader who expects all of it would distrust the colours."""
    return (
        f"With K = {k}, at most {k} of every {k + 1} tokens can be green: each round ends with one token that the "
        "target adds itself."
    )
