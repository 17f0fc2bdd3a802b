"""The texts of the latency lab: what it does, and what to expect. No figure that was not measured."""

from __future__ import annotations

ABOUT = (
    "Simulates a target that is far away from the draft: every call to the target waits for one round trip. Decoding "
    "and the text stay the same."
)


def expected(k: int, asks_target_alone: bool) -> str:
    """What a network in front of the target does to a run.

    Args:
        asks_target_alone: nothing is drafted, so every token is a call.
    """
    if asks_target_alone:
        return "What to expect: without a draft every token needs a call of its own and waits for a round trip."
    return (
        f"What to expect: the up to {k} tokens drafted in a round share one round trip. The longer it is, the closer "
        "the gain over one call per token comes to the tokens per round. Plain decoding without the network, which is "
        "what a streaming server has, does not get slower: with a long round trip it is the fastest. Both baselines "
        "are measured first, the second one through the network."
    )


def clipped(rtt_ms: float, jitter_ms: float) -> str:
    """Why less jitter is used than was asked for; empty where all of it is."""
    return f"Jitter is at most the round trip: ± {rtt_ms:g} ms is used." if 0 < rtt_ms < jitter_ms else ""
