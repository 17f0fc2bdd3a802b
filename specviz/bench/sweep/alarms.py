"""What makes the figures of a sweep doubtful: a machine whose speed changes, acceptance that falls during the sweep."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from specviz.bench.statistics import bootstrap_share
from specviz.bench.sweep.results import Bench, Trial
from specviz.core.tally import rate

#: With fewer runs a difference may be chance.
_FEWEST = 8
#: How many times slower or faster plain decoding must have become.
_DRIFT = 1.25
#: How much acceptance must have fallen, with intervals that do not overlap.
_FALL = 0.1


def alarms(bench: Bench) -> list[str]:
    """One sentence each; none where the figures are sound, or too few to judge."""
    trials: list[list[Trial]] = [[] for _ in bench.plan.cells()]
    for trial in sorted(bench.trials, key=lambda t: t.order):
        trials[trial.cell].append(trial)
    found = []
    for cell, own in zip(bench.plan.cells(), trials, strict=True):
        if len(own) < _FEWEST:
            continue
        if sentence := _slower(own) if cell.baseline else _falling(own):
            found.append(f"{cell.name}: {sentence}")
    return found


def _slower(trials: Sequence[Trial]) -> str:
    first, last = _halves(trials)
    before, after = (median([v for t in half if (v := t.tokens_per_second)] or [0.0]) for half in (first, last))
    if not before or not after or 1 / _DRIFT < after / before < _DRIFT:
        return ""
    return (
        f"{before:.1f} tokens/s in the first half of the sweep, {after:.1f} in the second: the machine became "
        f"{'slower' if after < before else 'faster'}. "
        "Speed-ups compare runs that were measured one after the other; tokens per second are means over both halves."
    )


def _falling(trials: Sequence[Trial]) -> str:
    """The order is random, so later prompts are not harder: a fall points at the draft, for example at its cache."""
    first, last = _halves(trials)
    before, after = (rate(sum(t.accepted for t in h), sum(t.tested for t in h)) for h in (first, last))
    if before is None or after is None or before - after < _FALL:
        return ""
    ours, theirs = (bootstrap_share([t.accepted for t in h], [t.tested for t in h]) for h in (first, last))
    if ours is None or theirs is None or ours.overlaps(theirs):
        return ""
    return f"acceptance fell from {before:.2f} in the first half of the sweep to {after:.2f} in the second."


def _halves(trials: Sequence[Trial]) -> tuple[Sequence[Trial], Sequence[Trial]]:
    middle = len(trials) // 2
    return trials[:middle], trials[middle:]
