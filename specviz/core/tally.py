"""Running counts of a run: the `Metrics` of each round, and the totals at the end."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from specviz.core.events import Metrics, TimeSplit, Way
from specviz.core.guarantee import Guarantee
from specviz.core.rounds import Verdict

#: Number of rounds in the recent rates and means.
WINDOW = 50


def rate(accepted: int, tested: int) -> float | None:
    """Accepted / tested; None while nothing was tested, so that "unknown" is never shown as 0."""
    return accepted / tested if tested else None


_FREE = Verdict((), (), Guarantee("UNKNOWN", ""), None, None)


@dataclass(slots=True)
class Tally:
    """Running counts of a run; creates the `Metrics` of each round and the totals of `Done`.

    Speeds leave the first round out, in the run and in its baseline: the first round includes the prefill, which plain
    decoding needs too, and a baseline measured on another prompt would otherwise not be comparable.
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
    _tested: deque[int] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _accepted: deque[int] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _draft_ms: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _verify_ms: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def add(
        self, *, drafted: int, tested: int, accepted: int, emitted: int, split: TimeSplit, guarantee: Guarantee,
        note: str = "", verdict: Verdict | None = None, k: int | None = None, way: Way | None = None,
    ) -> Metrics:  # fmt: skip
        """Count one round and return its `Metrics`. `emitted` counts the tokens that remain after a stop.

        Only the costs are read from `verdict`: bytes, calls, billed tokens.
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
        # The first split is not added to zeros: a part that is None in every round must stay None.
        self.total = self.total + split if self.rounds > 1 else split
        self._tested.append(tested)
        self._accepted.append(accepted)
        self._draft_ms.append(split.draft_ms)
        self._verify_ms.append(split.verify_ms)
        return Metrics(
            round=self.rounds - 1,
            acceptance_rate=rate(sum(self._accepted), sum(self._tested)),
            overall_acceptance_rate=rate(self.accepted, self.tested),
            accepted_per_round=self.accepted / self.rounds,
            tokens_per_round=self.emitted / self.rounds,
            effective_tps=self.tokens_per_second,
            baseline_tps=self.baseline_tps,
            speedup=self.speedup,
            avg_draft_latency_ms=sum(self._draft_ms) / len(self._draft_ms),
            avg_verify_latency_ms=sum(self._verify_ms) / len(self._verify_ms),
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
            way=way,
        )

    @property
    def tokens_per_second(self) -> float | None:
        """Emitted tokens per second of the run's own time, without the first round; None before the second ends."""
        ms = self.total.wall_ms - self.first_ms
        return (self.emitted - self.first_emitted) / (ms / 1000) if self.rounds > 1 and ms > 0 else None

    @property
    def speedup(self) -> float | None:
        """Tokens per second over the measured baseline; None without one."""
        tps = self.tokens_per_second
        return tps / self.baseline_tps if tps and self.baseline_tps else None
