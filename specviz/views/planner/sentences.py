"""The planner's sentences: the verdict, what would change it, where the usual formula fails. Plain text, no markup."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specviz.bench.planning.inputs import Measured
from specviz.bench.planning.model import Against, Costs, PlannerResult, iid_tokens_per_round
from specviz.record.state import RunState
from specviz.views import words
from specviz.views.planner.frame import baseline

#: Curves that differ by less than this share are called equal.
_SAME = 0.02


def verdict(found: PlannerResult, against: str) -> str:
    """The answer in a sentence; `against`: the name of the baseline."""
    factor = f"{words.number(found.speedup)} × {against}"
    if found.speculate is None:
        low, high = found.interval or (found.speedup, found.speedup)
        span = f"{words.number(low)} to {words.number(high)}"
        return f"Too close to call: K = {found.k} gives {factor}, with a 95 % interval of {span}."
    if found.speculate:
        return f"Speculate with K = {found.k}: {factor}."
    return f"Do not speculate here: at best {factor} with K = {found.k}."


def what_would_change_it(found: PlannerResult) -> str:
    """Where the answer changes, and what an extrapolation suggests."""
    sentences = []
    if found.speculate is None:
        sentences.append("Measure more rounds.")
    if found.speculate is False:
        got, needed = words.number(found.tokens), words.number(found.needed)
        sentences.append(f"A round gives {got} tokens in the time of {needed} without speculation.")
    sentences.append(_change(found))
    if found.further is not None:
        k, factor = found.further
        sentences.append(f"K = {k} may reach {words.number(factor)} ×, extrapolated beyond the measured K: measure it.")
    return " ".join(sentences)


def _change(found: PlannerResult) -> str:
    if found.rtt_ms is None and found.draft_ms is None:
        return "Neither another round trip nor a faster draft changes that."
    if found.rtt_ms is None:
        return f"No round trip changes that; a draft of {ms(found.draft_ms or 0)} per token would."
    if found.draft_ms is None:
        return f"The answer changes at a round trip of {ms(found.rtt_ms)}; at the present one no draft is fast enough."
    if found.against != "streaming" and not found.rtt_ms:
        return f"It holds at any round trip, and changes at a draft of {ms(found.draft_ms)} per token."
    return f"The answer changes at a round trip of {ms(found.rtt_ms)}, or a draft of {ms(found.draft_ms)} per token."


def rtt_at_break_even(found: PlannerResult) -> str:
    """The round trips at which some K pays."""
    if found.rtt_ms is None:
        return "no K pays, at any round trip"
    if found.against == "streaming":
        return f"pays up to {ms(found.rtt_ms)}"
    return f"pays from {ms(found.rtt_ms)} on" if found.rtt_ms else "pays at any round trip"


def draft_at_break_even(found: PlannerResult) -> str:
    """The draft speeds at which some K pays, at the present round trip."""
    if found.draft_ms is None:
        return "at this round trip no draft is fast enough"
    return f"pays up to {ms(found.draft_ms)} per token"


def where_iid_fails(measured: Measured) -> str:
    """How far the formula with one α for all positions is from the measurement, and why."""
    if measured.assumed:
        return (
            "Values set by hand give every position the same acceptance, as in the formula of Leviathan et al. (2023), "
            "so both curves are equal. Measured acceptance mostly differs by position: a run on the Live page shows it."
        )
    ks = np.arange(1, measured.k + 1)
    counted, iid = measured.tokens_per_round(ks), iid_tokens_per_round(measured.alpha, ks)
    off = iid / counted - 1
    worst = int(np.argmax(np.abs(off)))
    if abs(float(off[worst])) < _SAME:
        result = f"up to K = {measured.k} both curves agree within {100 * _SAME:.0f} %"
    else:
        more = "more" if off[worst] > 0 else "less"
        result = (
            f"at K = {ks[worst]} that would be {words.number(float(iid[worst]))} tokens per round where "
            f"{words.number(float(counted[worst]))} were measured, {100 * abs(float(off[worst])):.0f} % {more}"
        )
    start = f"The dotted curve assumes the same acceptance at each position, α = {words.number(measured.alpha)}"
    return f"{start} (Leviathan et al. 2023): {result}.{_by_position(measured)}"


def _by_position(measured: Measured) -> str:
    rates = measured.acceptance_by_position()
    text = ""
    if len(rates) > 1:
        first, last = words.percent(rates[0]), words.percent(rates[-1])
        text = f" Of the tested tokens, {first} were accepted at position 1 and {last} at position {len(rates)}."
    if has_short_blocks(measured):
        text += " Blocks that end early add to the difference: the formula drafts K tokens in every round."
    return text


def has_short_blocks(measured: Measured) -> bool:
    """Whether drafts are shorter than K often enough to matter."""
    return not measured.assumed and float(measured.drafted_per_round(measured.k)) < 0.9 * measured.k


def about(measured: Measured) -> str:
    """The measurements behind the numbers."""
    times = (
        f"a plain token takes {ms(measured.plain_ms)}, a drafted one {ms(measured.draft_ms)}, verifying at "
        f"K = {measured.k} takes {ms(float(measured.verify_ms(measured.k)))}"
    )
    if measured.assumed:
        return f"Acceptance {words.percent(measured.alpha)}, {times}."
    return f"{measured.source}: {measured.rounds:,} rounds, acceptance {words.percent(measured.alpha)}; {times}."


def warnings(measured: Measured, costs: Costs, against: Against) -> list[str]:
    """What limits the numbers, in sentences."""
    sentences = []
    if measured.network_included:
        sentences.append(
            "The server does not report how much of a call was network: the measured times contain the network "
            "already, and the round trip chosen here is added to them."
        )
    if measured.way == "generating":
        sentences.append("This server generates K + 1 tokens itself, so no speed-up over streaming is possible.")
    if has_short_blocks(measured):
        mean = words.number(float(measured.drafted_per_round(measured.k)))
        sentences.append(f"Blocks are shorter than K = {measured.k}: costs are computed for their mean, {mean} tokens.")
    if not measured.assumed and abs(costs.draft_ms - measured.draft_ms) > 1e-6 + 0.01 * measured.draft_ms:
        sentences.append(f"The draft speed is the one chosen here; {ms(measured.draft_ms)} was measured.")
    if against == "one call per token" and not measured.network_included and not costs.rtt_ms:
        sentences.append(f"Without a round trip, one call per token equals {baseline(measured, 'streaming')}.")
    return sentences


def run_lacks(state: RunState) -> str:
    """Why a run cannot be planned from yet; empty where it can."""
    if state.started is None:
        return "The run has not begun."
    if not state.started.baseline_tps:
        return "The run has no measured baseline to compare with."
    if not any(state.reached):
        return "No draft token was tested in this run, so its acceptance is not known."
    return "" if len(state.rounds) > 1 else "The run has too few rounds: the first one includes reading the prompt."


def price(value: float | None) -> str:
    """A price of 1,000 tokens; small prices get more digits."""
    if value is None:
        return words.NOT_KNOWN
    return f"{value:,.2f}" if value >= 1 or not value else f"{value:.3g}"


def ms(value: float) -> str:
    """Milliseconds with three significant digits."""
    return f"{value:,.0f} ms" if 100 <= value < 1e7 else f"{value:.3g} ms"


def spans(numbers: Sequence[int]) -> str:
    """1, 2, 3, 5 as "1 to 3, 5"."""
    found: list[list[int]] = []
    for n in numbers:
        if found and n == found[-1][-1] + 1:
            found[-1].append(n)
        else:
            found.append([n])
    return ", ".join(f"{s[0]} to {s[-1]}" if len(s) > 2 else ", ".join(map(str, s)) for s in found)
