"""The speed of a run, and what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specviz.record.state import RunState
from specviz.views import words


@dataclass(frozen=True, slots=True)
class Speeds:
    """Tokens per second, None where not measured.

    Attributes:
        speculative: of the run. plain: of the same target without a draft; a server streams where its stream can be
            counted, and a simulated network is left out.
        per_call: of a target behind a network, real or simulated, that is called once per token.
    """

    speculative: float | None
    plain: float | None
    per_call: float | None

    @property
    def speedup(self) -> float | None:
        """Against plain decoding; see `RunState.baseline` for what that is."""
        return _ratio(self.speculative, self.plain)

    @property
    def speedup_per_call(self) -> float | None:
        """Against one call per token."""
        return _ratio(self.speculative, self.per_call)


def speeds(state: RunState) -> Speeds:
    """As they stand after the last round."""
    started = state.started
    plain = started.baseline_tps if started else None
    if state.done is not None:
        speculative, plain = state.done.tokens_per_second, state.done.baseline_tps
    else:
        speculative = state.latest.effective_tps if state.latest else None
    return Speeds(speculative, plain, started.per_call_tps if started else None)


def is_remote(state: RunState) -> bool:
    """Whether the target is not in this process."""
    return state.started is not None and state.started.place != "here"


def is_simulated(state: RunState) -> bool:
    """Whether a network was simulated in front of the target."""
    return state.started is not None and state.started.simulated_rtt_ms > 0


def _ratio(fast: float | None, slow: float | None) -> float | None:
    return fast / slow if fast and slow else None


def speed_word(factor: float) -> Literal["slower", "as fast", "faster"]:
    """A speed-up in a word. It agrees with the factor as it is shown, with two digits: 1.00 is neither."""
    shown = round(factor, 2)
    return "slower" if shown < 1 else "faster" if shown > 1 else "as fast"


def compared(factor: float | None, other: str) -> str:
    """A speed-up with its word; empty where there is none."""
    return "" if factor is None else f"{words.number(factor)} × {other}: {speed_word(factor)}"
