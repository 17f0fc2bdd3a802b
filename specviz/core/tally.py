"""Running counts of a run: the `Metrics` of each round, and the totals at its end."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from specviz.core.events import Guarantee, Metrics, TimeSplit
from specviz.core.ports import Verdict

#: Rounds that the recent rates and means are over.
WINDOW = 50


def rate(accepted: int, tested: int) -> float | None:
    """Accepted / tested; None while nothing was tested, so that "unknown" never looks like "nothing kept"."""
    return accepted / tested if tested else None


_FREE = Verdict((), (), Guarantee("UNKNOWN", ""), None, None)


@dataclass(slots=True)
class Tally:
    """Running counts of a run; makes the `Metrics` of each round and the totals of `Done`.

    The rate leaves the first round out, on both sides of a comparison: it holds the prefill, which plain decoding
    pays just the same, and a baseline that was measured on another prompt would otherwise not be comparable.
    """

    baseline_tps: float | None = None
    drafted: int = 0
    tested: int = 0
    accepted: int = 0
    emitted: int = 0
    rounds: int = 0
    total: TimeSplit = TimeSplit()
    first_emitted: int = 0
    first_ms: float = 0.0
    _last: deque[tuple[int, int, TimeSplit]] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def add(
        self, *, drafted: int, tested: int, accepted: int, emitted: int, split: TimeSplit, guarantee: Guarantee,
        note: str = "", verdict: Verdict | None = None, k: int | None = None,
    ) -> Metrics:  # fmt: skip
        """Count one round and give its `Metrics`. `emitted` counts what stays after a stop cut the block.

        Of `verdict` only what it cost is read: bytes, calls, billed tokens.
        """
        cost = verdict or _FREE
        billed = (cost.billed_prompt_tokens, cost.billed_completion_tokens)
        self.drafted += drafted
        self.tested += tested
        self.accepted += accepted
        self.emitted += emitted
        self.rounds += 1
        if self.rounds == 1:
            self.first_emitted, self.first_ms = emitted, split.wall_ms
        # Not added to the zeros of no round at all: a part that no round knows stays unknown.
        self.total = self.total + split if self.rounds > 1 else split
        self._last.append((tested, accepted, split))
        recent = list(self._last)
        return Metrics(
            round=self.rounds - 1,
            acceptance_rate=rate(sum(a for _, a, _ in recent), sum(t for t, _, _ in recent)),
            overall_acceptance_rate=rate(self.accepted, self.tested),
            accepted_per_round=self.accepted / self.rounds,
            tokens_per_round=self.emitted / self.rounds,
            effective_tps=self.tokens_per_second,
            baseline_tps=self.baseline_tps,
            speedup=self.speedup,
            avg_draft_latency_ms=sum(s.draft_ms for *_, s in recent) / len(recent),
            avg_verify_latency_ms=sum(s.verify_ms for *_, s in recent) / len(recent),
            split=split,
            total=self.total,
            drafted=drafted,
            tested=tested,
            accepted=accepted,
            emitted=emitted,
            guarantee=guarantee,
            note=note,
            sent_bytes=cost.sent_bytes,
            received_bytes=cost.received_bytes,
            billed_tokens=None if billed == (None, None) else sum(n or 0 for n in billed),
            requests=cost.requests,
            billed_prompt_tokens=cost.billed_prompt_tokens,
            billed_completion_tokens=cost.billed_completion_tokens,
            k=k,
        )

    @property
    def tokens_per_second(self) -> float | None:
        """Emitted tokens per second of the run's own time, without the first round; None until a second one ended."""
        ms = self.total.wall_ms - self.first_ms
        return (self.emitted - self.first_emitted) / (ms / 1000) if self.rounds > 1 and ms > 0 else None

    @property
    def speedup(self) -> float | None:
        """Against the measured baseline; None without one."""
        tps = self.tokens_per_second
        return tps / self.baseline_tps if tps and self.baseline_tps else None
