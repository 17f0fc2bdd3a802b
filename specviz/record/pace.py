"""How fast a run is shown: as it comes, at a set pace, or one round at a time.

The models decode at their own speed, and nothing here is part of a measured time.
"""

from __future__ import annotations

import threading

from specviz.core.events import DraftToken, Event, Metrics, VerifyResult

#: From the draft of a stepped round to its verdict, when no pace is set.
_STEP_BEAT_S = 0.5
#: Maximum time that a late poll catches up on; longer than the interval between two polls of any page.
_CATCH_UP_S = 1.0

_LONG_AGO = float("-inf")


class Pace:
    """Decides for each event in order whether it may be shown yet.

    A round is shown in two beats: the draft tokens, then, half an interval later, the verdict. A beat that has begun is
    shown completely. An event that belongs to no round is shown as soon as all events before it are.

    Any thread may change the pace at any time. The caller passes the current time to `look`.

    Args:
        rounds_per_s: maximum rounds per second; None shows every event at once.
        paused: show no round until `step` or `resume`.
    """

    def __init__(self, rounds_per_s: float | None = None, *, paused: bool = False) -> None:
        self._rounds_per_s, self._paused = rounds_per_s, paused
        self._steps = 0
        # The beat that was shown last, and when it was due.
        self._round, self._judged = -1, True
        self._at = _LONG_AGO
        self._now: float | None = None
        self._before = _LONG_AGO
        self._lock = threading.Lock()

    @property
    def rounds_per_s(self) -> float | None:
        """The pace that was set, used unless paused; None: as it comes."""
        return self._rounds_per_s

    @property
    def paused(self) -> bool:
        """Whether rounds are shown only by `step`."""
        return self._paused

    def set(self, rounds_per_s: float | None) -> None:
        """Set the pace; while paused, it takes effect after `resume`."""
        with self._lock:
            self._rounds_per_s = rounds_per_s

    def pause(self) -> None:
        """Show no further round, and cancel steps that are not finished."""
        with self._lock:
            self._paused, self._steps = True, 0

    def resume(self) -> None:
        """Continue at the pace that was set."""
        with self._lock:
            self._paused, self._steps = False, 0

    def step(self) -> None:
        """Pause, and show one more round, or the rest of a round that is half shown. Further calls add rounds."""
        with self._lock:
            self._paused, self._steps = True, self._steps + 1

    def look(self, now: float) -> None:
        """Set the current time, in seconds of a monotonic clock; `allows` then answers for this time."""
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
            # The time for which a due beat had not yet arrived is not caught up.
            self._at = max(due, self._before)
            if self._paused and judged:
                self._steps -= 1
            return True

    def _due(self, number: int, judged: bool) -> float | None:
        """When a beat may begin; None: not before `step` or `resume`."""
        second = judged and number == self._round
        if self._paused:
            if not self._steps:
                return None
            # If another step is pending, the verdict of this round is shown at once.
            return self._at + self._beat_s(_STEP_BEAT_S) if second and self._steps == 1 else self._now
        # A round without a draft has one beat, and takes as long as other rounds.
        return self._at + self._beat_s(0.0) * (2 if judged and not second else 1)

    def _beat_s(self, otherwise: float) -> float:
        return 0.5 / self._rounds_per_s if self._rounds_per_s else otherwise
