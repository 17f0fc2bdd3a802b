"""The planner's numbers: cards, the bill, and a table of all K."""

from __future__ import annotations

from typing import Any

from specviz.bench.planning.inputs import Measured
from specviz.bench.planning.model import (
    Against,
    Bill,
    Costs,
    PlannerResult,
    cost,
    iid_speedups,
    marginal,
    round_ms,
    speedups,
)
from specviz.core.events import Way
from specviz.views import words
from specviz.views.planner.frame import KS, baseline
from specviz.views.planner.sentences import ms, price
from specviz.views.summary import Figure, Tone


def main_cards(measured: Measured, found: PlannerResult) -> list[Figure]:
    """Best K, its speed-up, its tokens per round, and the break-even round trip."""
    against = baseline(measured, found.against)
    tone: Tone = "neutral" if found.speculate is None else "good" if found.speculate else "bad"
    within = " to ".join(words.number(v) for v in found.interval) if found.interval else ""
    return [
        Figure(
            "Best K", str(found.k), f"of {'1 to ' if measured.k > 1 else ''}{measured.k}"
            + ("" if measured.assumed else " known"),
            "The K with the highest speed-up among the known ones. A smaller K that was not run itself is computed "
            "from the rounds of a larger K, cut short; it may differ by a few per cent. A larger K is extrapolated "
            "and never chosen.",
        ),
        Figure(
            "Speed-up", f"{words.number(found.speedup)} ×", f"95 %: {within}" if within else f"against {against}",
            f"Tokens per second divided by those of {against}, from the measured acceptance and times at the round "
            "trip and draft speed below. The interval is that of the tokens per round, with the counted rounds taken "
            "as independent; it does not include the uncertainty of the times.",
            tone,
        ),
        Figure(
            "Tokens per round", words.number(found.tokens), f"needs {words.number(found.needed)}",
            "Accepted tokens plus the resampled or bonus token. Speculation pays where they are more than the "
            "baseline gives in the time of a round.",
        ),
        _break_even(found),
    ]  # fmt: skip


def _break_even(found: PlannerResult) -> Figure:
    """The round trip and the draft speed at which the answer changes."""
    note = f"draft: up to {ms(found.draft_ms)} a token" if found.draft_ms is not None else "no draft is fast enough"
    value = "none" if found.rtt_ms is None else "any"
    if found.rtt_ms is not None and (found.rtt_ms or found.against == "streaming"):
        value = f"{'≤' if found.against == 'streaming' else '≥'} {ms(found.rtt_ms)}"
    return Figure(
        "Break-even RTT", value, note,
        "The round trips at which some measured K is at least as fast as the baseline, and the longest draft time per "
        "token for which this holds at the present round trip.",
    )  # fmt: skip


def bill_cards(measured: Measured, k: int, bill: Bill, way: Way) -> list[Figure]:
    """Prices of 1,000 output tokens; n/a without prices."""
    found = cost(measured, k, bill, way)
    times = ""
    if found.streaming and found.speculative is not None:
        times = f"{words.number(found.speculative / found.streaming, 1)} × the price of streaming."
    return [
        Figure("1,000 output tokens with speculation", price(found.speculative), _HOW[way] + times, ""),
        Figure("Streamed without", price(found.streaming), "The prompt is billed once.", ""),
        Figure("One call per token", price(found.per_call), "Every call bills the whole context.", ""),
    ]


_HOW: dict[Way, str] = {
    "scoring": "Each round bills the whole context, the drafted tokens and one token of output. ",
    "prefixes": "Each round bills the whole context K + 1 times, and one token of output for each. ",
    "generating": "Each round bills the whole context and K + 1 tokens of output. ",
}


def table(measured: Measured, costs: Costs, against: Against) -> list[dict[str, Any]]:
    """A row per K: the numbers behind the charts."""
    speed, iid = speedups(measured, costs, KS, against), iid_speedups(measured, costs, KS, against)
    tokens, time = measured.tokens_per_round(KS), round_ms(measured, costs, KS)
    steps = marginal(measured, costs, KS, against)
    return [
        {
            "K": k,
            "speed-up": round(float(speed[i]), 3),
            "tokens per round": round(float(tokens[i]), 3),
            "ms per round": round(float(time[i]), 2),
            "tokens gained": round(steps[i].tokens, 3),
            "for the time of": round(steps[i].cost_tokens, 3),
            "speed-up, same α everywhere": round(float(iid[i]), 3),
            "from": "assumption" if measured.assumed else "extrapolation" if steps[i].is_extrapolated else "measured",
        }
        for i, k in enumerate(KS)
    ]
