"""What the latency lab says: what it does, and what is to be expected of it. No figure that was not measured."""

from __future__ import annotations

ABOUT = (
    "As if the draft ran on a device and the target far away: every call to the target waits for one round trip. The "
    "network is simulated. Nothing leaves this machine, decoding is untouched, and the text stays the same."
)


def expected(k: int, asks_target_alone: bool) -> str:
    """What a network in front of the target should do to a run.

    Args:
        asks_target_alone: nothing is drafted, so every token is a call.
    """
    if asks_target_alone:
        return "What to expect: without a draft every token is a call, and waits for a round trip of its own."
    return (
        f"What to expect: the up to {k} tokens drafted in a round share one round trip. The slower the network, the "
        "closer the gain over one call per token comes to the tokens per round. Plain decoding without the network, "
        "which is what a server that streams comes to, loses nothing to it: far enough away, it is the faster one. "
        "Both are measured before the run, and single calls wait then too."
    )


def clipped(rtt_ms: float, jitter_ms: float) -> str:
    """Why less jitter is used than was asked for; empty where all of it is."""
    return f"Jitter is at most the round trip: ± {rtt_ms:g} ms is used." if 0 < rtt_ms < jitter_ms else ""
