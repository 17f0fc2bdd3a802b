"""Why a token was accepted, rejected, drawn or ignored, in one sentence for a reader who is new to the subject.

Every number is the event's own, with as many digits as the comparison needs: a draw just below the acceptance
probability never reads as equal to it. Where an event lacks a number or contradicts itself, as in a damaged recording,
the sentence says less and nothing false.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from specviz.core.events import Way
from specviz.core.settings import RULES, RuleName
from specviz.record.state import Node, RunState
from specviz.views import words

_LONGEST = 24
#: A number that needs more digits than this is written out in full.
_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Terms:
    """The settings that decide in a run; None where the recording does not have them."""

    rule: RuleName | None
    temperature: float | None
    tau: float | None
    way: Way | None
    full_rows: bool = True

    @classmethod
    def of(cls, state: RunState, number: int) -> Terms:
        """The terms of a round: the settings from the run's first event, and the way of the round."""
        started = state.started
        given = started.settings if started else {}
        rule = next((r for r in RULES if r == given.get("rule")), None)
        full_rows = started is None or started.place != "completions"
        return cls(rule, _number(given.get("temperature")), _number(given.get("tau")), state.way_of(number), full_rows)

    @property
    def greedy(self) -> bool:
        """Whether only the target's most probable token can be emitted."""
        return self.temperature == 0 or self.rule == "greedy"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def why(state: RunState, node: Node, residual: float | None = None) -> str:
    """The sentence for one node.

    Args:
        residual: of a resampled token, its probability in the residual; None where that is not known.
    """
    terms = Terms.of(state, node.round)
    sibling = None if node.sibling is None else state.nodes[node.sibling]
    match node.status:
        case "pending":
            return _pending(node)
        case "ignored":
            return _ignored(state, node)
        case "bonus":
            return _bonus(node, terms)
        case "resampled":
            return _resampled(node, sibling, terms, residual)
        case _:
            return _tested(node, sibling, terms)


def chances(*values: float) -> tuple[str, ...]:
    """Probabilities as text: two digits, more where unequal values would look equal or one would look like 0 or 1."""
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
    return "another token" if node is None else f"“{words.label(node.token, _LONGEST)}”"


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
            return _most_probable(node, final, "The rule accepts only the target's most probable token, which")
        case "threshold":
            return _by_threshold(node, terms.tau)
    return _plainly(node)


def _server_drew(node: Node, terms: Terms) -> bool:
    """Whether a draw by the server decided: always in ways that draw, else where its scores did not suffice."""
    if terms.way == "scoring" and not terms.greedy:
        return node.p is None if terms.rule == "threshold" else node.u is None
    return terms.way in ("prefixes", "generating")


def _own_draw(node: Node, final: Node | None, whose: str) -> str:
    if node.status == "accepted":
        return f"{whose} the same: kept."
    return f"{whose} {_named(final)}, and the draft token was {_named(node)}: rejected."


def _most_probable(node: Node, final: Node | None, what: str) -> str:
    if node.status == "accepted":
        return f"{what} is {_named(node)}, and the draft proposed the same: kept."
    return f"{what} is {_named(final)}; the draft proposed {_named(node)}: rejected."


def _by_rejection_sampling(node: Node) -> str:
    p, q, bar, u = node.p, node.q, node.acceptance_prob, node.u
    kept = node.status == "accepted"
    if p is None or q is None or bar is None or u is None or (u < bar) != kept:
        return _plainly(node)
    text_p, text_q = chances(p, q)
    if p >= q:
        return f"The target gives it at least as much as the draft (p = {text_p}, q = {text_q}): always kept."
    if p == 0:
        return f"The target gives it probability 0 at these settings (the draft gave it q = {text_q}): rejected."
    text_bar, text_u = chances(bar, u)
    drawn = f"the number drawn was {text_u}, " + ("below that, so it was kept." if kept else "so it was rejected.")
    return f"{_higher_q(node, text_p, text_q)} Kept with probability p/q = {text_bar}; {drawn}"


def _higher_q(node: Node, p: str, q: str) -> str:
    if node.q != 1:
        return f"The draft gave it more than the target does: q = {q}, p = {p}."
    if node.draft_logprob is None:
        return f"The draft copied this token instead of drawing it, so q = 1; the target gives it p = {p}."
    return f"At these settings the draft could only propose this token, so q = 1; the target gives it p = {p}."


def _by_match(node: Node, final: Node | None) -> str:
    sentence = _own_draw(node, final, "The target drew a token itself, and that was")
    return sentence if node.p is None else f"{sentence} The probability of a match was p = {chances(node.p)[0]}."


def _by_threshold(node: Node, tau: float | None) -> str:
    kept = node.status == "accepted"
    if node.p is None or tau is None or (node.p >= tau) != kept:
        return _plainly(node)
    p, bar = chances(node.p, tau)
    return f"The target gives it p = {p}, " + (
        f"at least the threshold τ = {bar}: kept." if kept else f"below the threshold τ = {bar}: rejected."
    )


def _plainly(node: Node) -> str:
    sentence = "The target accepted it." if node.status == "accepted" else "The target rejected it."
    if node.acceptance_prob is None:
        return sentence
    return f"{sentence} The acceptance probability was {chances(node.acceptance_prob)[0]}."


# Drawn by the target: resampled and bonus.


def _resampled(node: Node, rejected: Node | None, terms: Terms, residual: float | None) -> str:
    place = f"in place of {_named(rejected)}, which was rejected" if rejected else "in place of the draft token"
    if rejected is not None and _server_drew(rejected, terms):
        return f"The server's own token, {place}."
    if terms.greedy:
        return f"The target's most probable token, {place}."
    match terms.rule:
        case "probabilistic":
            return (
                f"Drawn {place}, from the residual: the part of the target's distribution that exceeds the draft's, "
                f"max(0, p \N{MINUS SIGN} q) scaled to 1." + _in_residual(residual)
            )
        case "deterministic":
            return f"The token that the target drew itself, {place}."
        case "threshold":
            again = ", which gave the same token" if rejected and rejected.token_id == node.token_id else ""
            return f"Drawn from the target's whole distribution, {place}{again}."
    return f"Drawn by the target, {place}."


def _in_residual(residual: float | None) -> str:
    return "" if residual is None else f" Its probability there is {chances(residual)[0]}."


def _bonus(node: Node, terms: Terms) -> str:
    if node.position == 0:
        return f"Nothing was drafted in this round: {_by_itself(node, terms)}."
    drafts = "The one draft token was" if node.position == 1 else f"All {node.position} draft tokens were"
    return f"{drafts} kept, so the target adds one more: {_by_itself(node, terms)}."


def _by_itself(node: Node, terms: Terms) -> str:
    if terms.way in ("prefixes", "generating"):
        return "the server drew this one"
    if terms.greedy:
        return "this is its most probable one" if node.position else "this is the target's most probable token"
    drawn = "drawn from its own distribution" if node.position else "the target drew this one"
    return drawn if node.p is None else f"{drawn}, p = {chances(node.p)[0]}"


# Not tested: ignored and pending.


def _ignored(state: RunState, node: Node) -> str:
    # Backwards through the block, which has at most K tokens.
    before = node
    while before.parent >= 0 and (parent := state.nodes[before.parent]).round == node.round:
        if parent.status == "rejected":
            return f"It follows {_named(parent)}, which was rejected: never tested."
        before = parent
    done = state.done
    if done is not None and node.index >= done.total_tokens:
        return "It follows the end of the output: never tested."
    return "The round ended before this token: never tested."


def _pending(node: Node) -> str:
    q = next((a.prob for a in node.draft_alternatives if a.token_id == node.token_id), None)
    proposed = "Proposed by the draft, not judged yet"
    return f"{proposed}." if q is None else f"{proposed}; the draft gave it q = {chances(q)[0]}."
