"""What the latency lab says: what it does, and what is to be expected of it. No figure that was not measured."""

from __future__ import annotations

ABOUT = (
    "As if the draft ran on a device and the target far away: every call to the target waits for a round trip. The "
    "network is simulated; decoding is untouched, and so is the text."
)


def expected(k: int, asks_target_alone: bool) -> str:
    """What a network in front of the target should do to a run.

    Args:
        asks_target_alone: nothing is drafted, so every token is a call.
    """
    if asks_target_alone:
        return "What to expect: without a draft every token is a call, and waits for a round trip of its own."
    return (
        f"What to expect: the up to {k} tokens drafted in a round share one round trip, so the gain over one call per "
        "token grows towards the tokens per round. Plain decoding without the network, as of a server that streams, "
        "loses nothing to it: far enough away, it is the faster one. Both are measured first, and that waits too."
    )


def clipped(rtt_ms: float, jitter_ms: float) -> str:
    """Why less jitter is used than was asked for; empty where all of it is."""
    return f"Jitter is at most the round trip: ± {rtt_ms:g} ms is used." if 0 < rtt_ms < jitter_ms else ""
