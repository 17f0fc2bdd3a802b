"""How fast a run is shown: as it comes, at a pace for presenting, or one round at a time.

The models decode at their own speed and never hear of this: nothing here is within a measured time.
"""

from __future__ import annotations

import threading

from specviz.core.events import DraftToken, Event, Metrics, VerifyResult

#: From the draft of a stepped round to its verdict, where no pace says how long.
_STEP_BEAT_S = 0.5
#: What a look that comes late may catch up on: longer than any page waits between two looks.
_CATCH_UP_S = 1.0

_LONG_AGO = float("-inf")


class Pace:
    """Says of one event after the other whether it may be shown yet.

    A round appears in two beats: what the draft proposes, then, half an interval later, what becomes of it. A beat that
    has begun is shown as a whole. What belongs to no round is shown as soon as everything before it was.

    Any thread may change it at any time. Time comes in from outside, with each look.

    Args:
        rounds_per_s: at most so many; None shows everything that has come.
        paused: show no round until `step` or `resume`.
    """

    def __init__(self, rounds_per_s: float | None = None, *, paused: bool = False) -> None:
        self._rounds_per_s, self._paused = rounds_per_s, paused
        self._steps = 0
        # The beat that is shown, and when it was due.
        self._round, self._judged = -1, True
        self._at = _LONG_AGO
        self._now: float | None = None
        self._before = _LONG_AGO
        self._lock = threading.Lock()

    @property
    def rounds_per_s(self) -> float | None:
        """The pace that was set, in force unless paused; None: as it comes."""
        return self._rounds_per_s

    @property
    def paused(self) -> bool:
        """Whether it waits for steps."""
        return self._paused

    def set(self, rounds_per_s: float | None) -> None:
        """Go on at this pace, or, while paused, after that."""
        with self._lock:
            self._rounds_per_s = rounds_per_s

    def pause(self) -> None:
        """Show nothing more, not even a step that is under way."""
        with self._lock:
            self._paused, self._steps = True, 0

    def resume(self) -> None:
        """Go on at the pace that was set."""
        with self._lock:
            self._paused, self._steps = False, 0

    def step(self) -> None:
        """Pause, and show one round more, or the rest of one that is half shown; again and again for many."""
        with self._lock:
            self._paused, self._steps = True, self._steps + 1

    def look(self, now: float) -> None:
        """Somebody looks, at `now` seconds of a clock that never goes back; what `allows` says is about this look."""
        with self._lock:
            self._before = now if self._now is None else max(self._now, now - _CATCH_UP_S)
            self._now = now

    def allows(self, event: Event) -> bool:
        """Whether the next event may be shown now. If so, it counts as shown."""
        if not isinstance(event, DraftToken | VerifyResult | Metrics):
            return True
        with self._lock:
            number, judged = event.round, not isinstance(event, DraftToken)
            if (number, judged) == (self._round, self._judged):
                return True
            due = self._due(number, judged)
            if due is None or self._now is None or self._now < due:
                return False
            self._round, self._judged = number, judged
            # Nothing makes up for the time in which a beat was due and had not come.
            self._at = max(due, self._before)
            if self._paused and judged:
                self._steps -= 1
            return True

    def _due(self, number: int, judged: bool) -> float | None:
        """When a beat may begin; None: not before somebody says so."""
        second = judged and number == self._round
        if self._paused:
            if not self._steps:
                return None
            # A second step does not wait for the first one to play out.
            return self._at + self._beat_s(_STEP_BEAT_S) if second and self._steps == 1 else self._now
        # A round without a draft has one beat and takes as long as any other.
        return self._at + self._beat_s(0.0) * (2 if judged and not second else 1)

    def _beat_s(self, otherwise: float) -> float:
        return 0.5 / self._rounds_per_s if self._rounds_per_s else otherwise
