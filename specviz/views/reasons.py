"""Why a token was kept, refused, drawn or passed over, in a sentence for whoever sees one for the first time.

Every number in a sentence is the event's own, written with as many digits as what is said of it takes: a draw that was
just below its bar never reads as equal to it. Where an event lacks a number, or contradicts itself, as a damaged
recording may, the sentence says less, and nothing that is not so.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from specviz.core.events import Way
from specviz.core.settings import RULES, RuleName
from specviz.record.state import Node, RunState
from specviz.views import words

_LONGEST = 24
#: With as many, a number is written out as it is.
_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Terms:
    """What decided in a run; None where its settings do not say."""

    rule: RuleName | None
    temperature: float | None
    tau: float | None
    way: Way

    @classmethod
    def of(cls, state: RunState) -> Terms:
        """The terms of a run, out of the settings that it was started with."""
        started = state.started
        given = started.settings if started else {}
        rule = next((r for r in RULES if r == given.get("rule")), None)
        way = started.way if started else "rows"
        return cls(rule, _number(given.get("temperature")), _number(given.get("tau")), way)

    @property
    def greedy(self) -> bool:
        """Whether the target's most probable token is the only one that can stand."""
        return self.temperature == 0 or self.rule == "greedy"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def why(state: RunState, node: Node, residual: float | None = None) -> str:
    """The sentence for one node.

    Args:
        residual: of a resampled token, its share of what it was drawn from; None where that is not known.
    """
    terms = Terms.of(state)
    other = None if node.sibling is None else state.nodes[node.sibling]
    match node.status:
        case "pending":
            return _pending(node)
        case "ignored":
            return _ignored(state, node)
        case "bonus":
            return _bonus(node, terms)
        case "resampled":
            return _resampled(node, other, terms, residual)
        case _:
            return _tested(node, other, terms)


def chances(*values: float) -> tuple[str, ...]:
    """Probabilities as text: two digits, more where unequal ones would look equal, or one like 0 or 1 that is not."""
    for digits in range(2, _DIGITS):
        texts = tuple(_chance(value, digits) for value in values)
        if not any(a != b and x == y for (a, x), (b, y) in combinations(zip(values, texts, strict=True), 2)):
            return texts
    return tuple(repr(value) for value in values)


def _chance(value: float, digits: int) -> str:
    if value in (0, 1):
        return f"{value:.0f}"
    if value < 1e-4:
        return f"{value:.{digits - 1}e}"
    texts = (f"{value:.{d}f}" for d in range(digits, _DIGITS))
    return next((text for text in texts if float(text) not in (0, 1)), repr(value))


def _named(node: Node | None) -> str:
    return "another one" if node is None else f"“{words.label(node.token, _LONGEST)}”"


# Tested: accepted and rejected.


def _tested(node: Node, final: Node | None, terms: Terms) -> str:
    if _server_drew(node, terms):
        return _own_draw(node, final, "The server's own token here was")
    if terms.temperature == 0:
        return _most_probable(node, final, "Temperature 0: the target's most probable token")
    match terms.rule:
        case "probabilistic":
            return _by_rejection_sampling(node)
        case "deterministic":
            return _by_match(node, final)
        case "greedy":
            return _most_probable(node, final, "The rule keeps only the target's most probable token, which")
        case "threshold":
            return _by_bar(node, terms.tau)
    return _plainly(node)


def _server_drew(node: Node, terms: Terms) -> bool:
    """Whether the server's own draw decided: always in the ways that draw, else where its scores did not suffice."""
    if terms.way == "scoring" and not terms.greedy:
        return node.p is None if terms.rule == "threshold" else node.u is None
    return terms.way in ("prefixes", "generating")


def _own_draw(node: Node, final: Node | None, whose: str) -> str:
    if node.status == "accepted":
        return f"{whose} the same: kept."
    return f"{whose} {_named(final)}, and the draft had {_named(node)}: refused."


def _most_probable(node: Node, final: Node | None, what: str) -> str:
    if node.status == "accepted":
        return f"{what} is {_named(node)}, and the draft proposed the same: kept."
    return f"{what} is {_named(final)}; the draft proposed {_named(node)}: refused."


def _by_rejection_sampling(node: Node) -> str:
    p, q, bar, u = node.p, node.q, node.acceptance_prob, node.u
    kept = node.status == "accepted"
    if p is None or q is None or bar is None or u is None or (u < bar) != kept:
        return _plainly(node)
    text_p, text_q = chances(p, q)
    if p >= q:
        return f"The target was at least as sure of it as the draft (p = {text_p}, q = {text_q}): always kept."
    if p == 0:
        return f"The target gives it no chance at these settings (p = 0, the draft gave it q = {text_q}): refused."
    text_bar, text_u = chances(bar, u)
    drawn = f"the number drawn was {text_u}, " + ("below that, so it stayed." if kept else "so it was refused.")
    return f"{_surer(node, text_p, text_q)} Kept with probability p/q = {text_bar}; {drawn}"


def _surer(node: Node, p: str, q: str) -> str:
    if node.q != 1:
        return f"The draft was surer than the target: q = {q}, p = {p}."
    if node.draft_logprob is None:
        return f"The draft copied this token instead of drawing it, so q = 1; the target gives it p = {p}."
    return f"The draft had no other choice at these settings, so q = 1; the target gives it p = {p}."


def _by_match(node: Node, final: Node | None) -> str:
    told = _own_draw(node, final, "The target drew a token of its own, and that was")
    return told if node.p is None else f"{told} The chance of a match was p = {chances(node.p)[0]}."


def _by_bar(node: Node, tau: float | None) -> str:
    kept = node.status == "accepted"
    if node.p is None or tau is None or (node.p >= tau) != kept:
        return _plainly(node)
    p, bar = chances(node.p, tau)
    return f"The target gives it p = {p}, " + (
        f"at least the bar τ = {bar}: kept." if kept else f"below the bar τ = {bar}: refused."
    )


def _plainly(node: Node) -> str:
    told = "The target kept it." if node.status == "accepted" else "The target refused it."
    if node.acceptance_prob is None:
        return told
    return f"{told} The chance of being kept was {chances(node.acceptance_prob)[0]}."


# Drawn by the target: resampled and bonus.


def _resampled(node: Node, refused: Node | None, terms: Terms, residual: float | None) -> str:
    place = f"in place of {_named(refused)}, which was refused" if refused else "in place of the draft's token"
    if refused is not None and _server_drew(refused, terms):
        return f"The server's own token, {place}."
    if terms.greedy:
        return f"The target's most probable token, {place}."
    match terms.rule:
        case "probabilistic":
            return (
                f"Drawn {place}: from what is left of the target's distribution where the draft gave too little, "
                f"max(0, p \N{MINUS SIGN} q) scaled to 1." + _share_of_it(residual)
            )
        case "deterministic":
            return f"The token that the target drew itself, {place}."
        case "threshold":
            again = ", and it came out the same" if refused and refused.token_id == node.token_id else ""
            return f"Drawn from the target's whole distribution, {place}{again}."
    return f"Drawn by the target, {place}."


def _share_of_it(residual: float | None) -> str:
    return "" if residual is None else f" This token's share of that is {chances(residual)[0]}."


def _bonus(node: Node, terms: Terms) -> str:
    if node.position == 0:
        return f"Nothing was drafted in this round: {_by_itself(node, terms)}."
    drafts = "The one draft token was" if node.position == 1 else f"All {node.position} draft tokens were"
    return f"{drafts} kept, so the target adds one for free: {_by_itself(node, terms)}."


def _by_itself(node: Node, terms: Terms) -> str:
    if terms.way in ("prefixes", "generating"):
        return "this is the server's own"
    if terms.greedy:
        return "this is its most probable one" if node.position else "this is the target's most probable token"
    told = "drawn from its own distribution" if node.position else "the target drew this one by itself"
    return told if node.p is None else f"{told}, p = {chances(node.p)[0]}"


# Not tested: ignored and pending.


def _ignored(state: RunState, node: Node) -> str:
    # Back through the block, which is K tokens long at most.
    before = node
    while before.parent >= 0 and (parent := state.nodes[before.parent]).round == node.round:
        if parent.status == "rejected":
            return f"It stands behind {_named(parent)}, which was refused: never tested."
        before = parent
    done = state.done
    if done is not None and node.index >= done.total_tokens:
        return "It stands behind the end of the output: never tested."
    return "The round ended before it: never tested."


def _pending(node: Node) -> str:
    q = next((a.prob for a in node.draft_alternatives if a.token_id == node.token_id), None)
    told = "The draft proposes it and waits for the target"
    return f"{told}." if q is None else f"{told}; it gave it q = {chances(q)[0]}."
