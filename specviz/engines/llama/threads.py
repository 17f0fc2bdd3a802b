"""How many threads a pass takes: measured, and measured again when passes become slow.

The library's workers wait for each other several hundred times a pass, and they spin while they wait. Where another
process wants the same core, all of them wait for the worker that does not run: beside a busy process two threads can be
ten times as slow as one. The number changes times only: equal passes give equal bits with any number of threads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean, median
from time import perf_counter

#: Passes are compared with passes of about as many tokens: 1, 2, 3 to 4, 5 to 8 and so on; larger ones are a prefill.
_LARGEST = 64
#: A pass that takes this many times the usual is slow, and this many slow passes of the last eight start a trial; so
#: does a loss of the time of this many usual passes among them.
_SLOW, _SLOW_PASSES, _WINDOW, _LOST_PASSES = 1.5, 5, 8, 6.0
#: A trial gives each number this many passes, or fewer where they have taken this many times what all of the best took.
#: Means are compared: beside a busy process most passes are fast, and a few take the whole time slice of the other one.
_TRIED_PASSES, _HOPELESS = 8, 1.5
_MEASURED_PASSES = 3  # with each number at the load
#: Seconds of passes until other numbers are tried again; doubles up to the second figure while one number stays the
#: best. Never less than this many times what the trial took.
_FIRST_WAIT_S, _LONGEST_WAIT_S, _WAIT_FACTOR = 1.0, 16.0, 25.0


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def numbers(cores: int) -> list[int]:
    """The numbers of threads that are tried, the largest first: all cores, and halves of that down to one."""
    found = [max(1, cores)]
    while found[-1] > 1:
        found.append(found[-1] // 2)
    return found


@dataclass
class _Trial:
    """Which numbers have been tried, and how slow their passes were, as multiples of the usual time."""

    before: int
    left: list[int]
    began: float
    seen: dict[int, list[float]] = field(default_factory=dict)


class Threads:
    """The number of threads of all scorers of this process.

    Args:
        fixed: a number that is never changed; None lets it be measured.
        clock: seconds.
    """

    def __init__(self, fixed: int | None = None, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._numbers = [fixed] if fixed else numbers(usable_cores())
        self.number = self._numbers[0]
        self._usual: dict[tuple[int, int], float] = {}
        self._recent: list[float] = []
        self._trial: _Trial | None = None
        self._measuring = False
        self._wait_s, self._next_at, self._spent = _FIRST_WAIT_S, 0.0, 0.0
        #: The number that was the best on a quiet machine, see `measure`.
        self._quiet = self.number

    def measure(self, one_pass: Callable[[], object]) -> None:
        """Choose by the times of passes over one token.

        Args:
            one_pass: computes one token and waits for it.
        """
        if len(self._numbers) == 1:
            return
        self._measuring = True
        times: dict[int, float] = {}
        for number in self._numbers:
            self.number = number
            one_pass()
            found = []
            for _ in range(_MEASURED_PASSES):
                began = self._clock()
                one_pass()
                found.append(self._clock() - began)
            times[number] = median(found)
            if times[number] > 1.5 * min(times.values()):
                break  # still fewer threads are slower still
        self.number = self._quiet = min(times, key=lambda number: times[number])
        self._trial, self._recent, self._measuring = None, [], False

    def took(self, scorer: int, tokens: int, seconds: float) -> None:
        """Record a pass, and change the number where others may be faster now.

        Args:
            scorer: tells the passes of one scorer from those of another.
            tokens: in the pass.
            seconds: that it took.
        """
        if len(self._numbers) == 1 or tokens > _LARGEST or self._measuring:
            return
        self._spent += seconds
        key = (scorer, (tokens - 1).bit_length())
        usual = self._usual.setdefault(key, seconds)
        if seconds < usual:
            usual = self._usual[key] = seconds
        slowness = seconds / usual
        if self._trial is not None:
            self._tried(self._trial, slowness)
            return
        self._recent = [*self._recent[1 - _WINDOW :], slowness]
        lost = sum(max(0.0, value - 1.0) for value in self._recent)
        slow = lost > _LOST_PASSES or sum(value > _SLOW for value in self._recent) >= _SLOW_PASSES
        if (slow or self.number != self._quiet) and self._spent >= self._next_at:
            # Fewer threads first: they lose least where another process wants the cores. The present number is last.
            others = [number for number in reversed(self._numbers) if number != self.number]
            self._trial = _Trial(self.number, [*others, self.number], self._spent)
            self.number = others[0]

    def _tried(self, trial: _Trial, slowness: float) -> None:
        seen = trial.seen.setdefault(self.number, [])
        seen.append(slowness)
        others = [fmean(values) for number, values in trial.seen.items() if number != self.number]
        most = _HOPELESS * _TRIED_PASSES * min(others, default=math.inf)
        if len(seen) < _TRIED_PASSES and sum(seen) < most:
            return
        trial.left.remove(self.number)
        if trial.left:
            self.number = trial.left[0]
            return
        best = min(trial.seen, key=lambda number: fmean(trial.seen[number]))
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S) if best == trial.before else _FIRST_WAIT_S
        self._next_at = self._spent + max(self._wait_s, _WAIT_FACTOR * (self._spent - trial.began))
        self.number, self._trial, self._recent = best, None, []


#: One for the process: its scorers compete for the same cores.
threads = Threads()
