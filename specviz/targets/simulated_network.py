"""A network that is simulated in front of a target in this process: what a target far away would be like."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable

import numpy as np

from specviz.core.errors import StoppedError
from specviz.core.events import Guarantee
from specviz.core.ports import Round, Target, Verdict
from specviz.core.settings import Rule, Sampling

#: How often a wait asks whether it should end.
POLL_S = 0.05
#: Sets the stream of the delays apart from that of the sampler, which has the same seed.
_DELAYS = 1


class SimulatedNetwork:
    """Waits in front of every call as long as a round trip takes, then asks the target; nothing else changes.

    Each delay is drawn uniformly from `rtt_ms` ± `jitter_ms`, so the mean is `rtt_ms` and what is shown as "80 ms ± 20
    ms" is just that. A real network has a longer tail; this one is for learning, and for that a figure that can be
    worked with in one's head is better. The whole round trip is waited for at once: where in a call the way lies
    changes no figure.

    The delays have a generator of their own. The sampler's draws, and with them the text, are the same with and
    without the network, and equal seeds give equal delays.

    Args:
        near: the target itself.
        rtt_ms: round trip. jitter_ms: at most `rtt_ms`, so that no delay is below 0.
        seed: of the delays.
        cancelled: asked about twenty times a second during every wait.
        pause: waits so many seconds. clock: seconds.
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
        """The target's own: a network loses nothing."""
        return self.near.guarantee(sampling, rule)

    def verify(self, round: Round) -> Verdict:
        """The target's verdict after one round trip, with what was really waited in `network_ms`.

        Raises:
            StoppedError: the run was stopped on the way.
        """
        waited_ms = self._wait(self._delays.uniform(self._rtt_ms - self._jitter_ms, self._rtt_ms + self._jitter_ms))
        verdict = self.near.verify(round)
        return dataclasses.replace(verdict, network_ms=(verdict.network_ms or 0.0) + waited_ms)

    def reset(self) -> None:
        """Forget the target's cache; the delays begin anew."""
        self.near.reset()
        self._delays = self._new_delays()

    def _new_delays(self) -> np.random.Generator:
        return np.random.default_rng((self._seed, _DELAYS))

    def _wait(self, delay_ms: float) -> float:
        """Milliseconds that were waited, a little more than asked for."""
        began = self._clock()
        ends = began + delay_ms / 1000
        while (left := ends - self._clock()) > 0:
            if self._cancelled():
                raise StoppedError("Stopped while waiting for the simulated network.")
            self._pause(min(left, POLL_S))
        return (self._clock() - began) * 1000
