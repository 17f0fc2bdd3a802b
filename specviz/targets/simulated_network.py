"""A simulated network in front of a target. It shows how decoding behaves when the target is far away."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable

import numpy as np

from specviz.core.errors import StoppedError
from specviz.core.guarantee import Guarantee
from specviz.core.ports import Target
from specviz.core.rounds import Round, Verdict
from specviz.core.settings import Rule, Sampling

#: Seconds between two checks whether a wait is cancelled.
POLL_S = 0.05
#: Second part of the seed of the delays, so that they do not repeat the draws of the sampler, which has the same seed.
_DELAYS = 1


class SimulatedNetwork:
    """Waits for one round trip before every call of the target; nothing else changes.

    Each delay is drawn uniformly from `rtt_ms` ± `jitter_ms`, so the mean is `rtt_ms`, and "80 ms ± 20 ms" is exactly
    what happens. A real network has a longer tail. The uniform distribution was chosen because it is for learning:
    its figures are easy to check by hand. The whole round trip is waited for before the call; to split it into the way
    there and the way back would change no figure.

    The delays have their own generator. So the sampler draws the same with and without the network, the text is the
    same, and equal seeds give equal delays.

    Args:
        near: the target behind the network.
        rtt_ms: round trip. jitter_ms: at most `rtt_ms`, so that no delay is below 0.
        seed: of the delays.
        cancelled: called about twenty times a second during every wait; true ends the wait.
        pause: sleeps for a number of seconds. clock: the time in seconds.
    """

    def __init__(
        self,
        near: Target,
        rtt_ms: float,
        jitter_ms: float = 0.0,
        *,
        seed: int = 0,
        cancelled: Callable[[], bool] = lambda: False,
        pause: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if not 0 <= jitter_ms <= rtt_ms:
            raise ValueError(f"the jitter must be between 0 and the round trip of {rtt_ms:g} ms, not {jitter_ms:g} ms")
        self.near, self._rtt_ms, self._jitter_ms = near, rtt_ms, jitter_ms
        self.name, self.tokenizer = near.name, near.tokenizer
        self.capabilities = dataclasses.replace(
            near.capabilities, simulated_rtt_ms=rtt_ms, simulated_jitter_ms=jitter_ms
        )
        self._seed, self._cancelled, self._clock = seed, cancelled, clock
        self._pause = pause or threading.Event().wait
        self._delays = self._new_delays()

    def guarantee(self, sampling: Sampling, rule: Rule) -> Guarantee:
        """The target's own: a network changes no output."""
        return self.near.guarantee(sampling, rule)

    def verify(self, round: Round) -> Verdict:
        """The target's verdict after one round trip; the measured wait is added to `network_ms`.

        Raises:
            StoppedError: the run was stopped during the wait.
        """
        waited_ms = self._wait(self._delays.uniform(self._rtt_ms - self._jitter_ms, self._rtt_ms + self._jitter_ms))
        verdict = self.near.verify(round)
        return dataclasses.replace(verdict, network_ms=(verdict.network_ms or 0.0) + waited_ms)

    def reset(self) -> None:
        """Forget the target's cache, and restart the sequence of delays."""
        self.near.reset()
        self._delays = self._new_delays()

    def _new_delays(self) -> np.random.Generator:
        return np.random.default_rng((self._seed, _DELAYS))

    def _wait(self, delay_ms: float) -> float:
        """Wait; returns the measured wait in milliseconds, a little more than `delay_ms`."""
        began = self._clock()
        ends = began + delay_ms / 1000
        while (left := ends - self._clock()) > 0:
            if self._cancelled():
                raise StoppedError("Stopped while waiting for the simulated network.")
            self._pause(min(left, POLL_S))
        return (self._clock() - began) * 1000
