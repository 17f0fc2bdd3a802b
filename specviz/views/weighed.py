"""The tokens weighed in a decision, as rows of a table: the probability that draft and target give each of them.

The residual is derived here and not recorded: max(0, p - q) / (1 - Σ min(p, q))
(Leviathan et al. 2023, section 2.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from specviz.core.events import Alternative, Weighed
from specviz.record.state import Node, RunState
from specviz.views.reasons import Terms

SHOWN = 10


@dataclass(frozen=True, slots=True)
class WeighedRow:
    """One row; None where a number is not known.

    Attributes:
        p, q: after the sampling settings. residual: what a rejected position is drawn from.
        raw_p, raw_q: before temperature, top-k and top-p.
    """

    token_id: int
    token: str
    p: float | None = None
    q: float | None = None
    residual: float | None = None
    raw_p: float | None = None
    raw_q: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """The most probable tokens of both sides, best first, and all others as one.

    Attributes:
        by_settings: whether to draw p and q; else raw_p and raw_q: at temperature 0 the former are 0 and 1 and show
            nothing, and some servers report only the latter.
        draft_id, final_id: the tokens that the decision was about.
    """

    entries: tuple[WeighedRow, ...]
    rest: WeighedRow
    by_settings: bool
    draft_id: int | None
    final_id: int | None

    def residual_of(self, token_id: int | None) -> float | None:
        """The residual of one token; None where it is not known."""
        return next((e.residual for e in self.entries if e.token_id == token_id), None)


def table(state: RunState, node: Node) -> Table:
    """The table of the decision behind a node."""
    terms = Terms.of(state, node.round)
    # A resampled token belongs to the decision about the rejected one.
    sibling = None if node.sibling is None else state.nodes[node.sibling]
    decided = sibling if node.status == "resampled" and sibling is not None else node
    drafted = decided if decided.status not in ("bonus", "resampled") else None
    final = (
        sibling if node.status == "rejected" else node if node.status in ("accepted", "bonus", "resampled") else None
    )
    has_residual = terms.rule == "probabilistic" and decided.status == "rejected" and not terms.temperature == 0
    entries = _with_raw(_known(decided, terms), decided, final)
    entries = _with_residual(entries, decided.overlap) if has_residual else entries
    known = terms.full_rows or bool(decided.weighed) or not decided.target_alternatives
    by_settings = terms.temperature != 0 and known
    ids = drafted.token_id if drafted else None, final.token_id if final else None
    shown = _best(entries, by_settings, [i for i in ids if i is not None])
    return Table(shown, _rest(shown), by_settings, *ids)


def residual(p: float | None, q: float | None, overlap: float | None) -> float | None:
    """A token's probability in the residual; None where it is not known, or the residual is empty."""
    if p is None or q is None or overlap is None or overlap >= 1:
        return None
    return min(1.0, max(0.0, p - q) / (1 - overlap))


def _known(node: Node, terms: Terms) -> list[WeighedRow]:
    """What was recorded; for untested drafts and older recordings, what the most probable tokens give."""
    if node.weighed:
        return [WeighedRow(*token) for token in node.weighed]
    drafted = {a.token_id: a for a in node.draft_alternatives}
    # The probabilities of a server's best tokens at these settings would be guesses.
    judged = {a.token_id: a for a in node.target_alternatives} if terms.full_rows else {}
    own = Weighed(node.token_id, node.token, node.p, node.q)
    q = own.q if own.q is not None or node.token_id not in drafted else drafted[node.token_id].prob
    others = {i: a.token for i, a in (drafted | judged).items() if i != node.token_id}
    return [WeighedRow(node.token_id, node.token, own.p, q)] + [
        WeighedRow(i, token, judged[i].prob if i in judged else None, drafted[i].prob if i in drafted else None)
        for i, token in others.items()
    ]


def _with_raw(entries: Sequence[WeighedRow], node: Node, final: Node | None) -> list[WeighedRow]:
    """Entries with raw_p and raw_q, and the tokens that are among the best by these only."""
    p = _chances_of(node.target_alternatives, node.token_id, node.target_logprob)
    q = _chances_of(node.draft_alternatives, node.token_id, node.draft_logprob)
    if final is not None and final.target_logprob is not None:
        p.setdefault(final.token_id, math.exp(min(0.0, final.target_logprob)))
    given = {e.token_id: e for e in entries}
    names = {a.token_id: a.token for a in (*node.target_alternatives, *node.draft_alternatives)}
    # Where the known ones add up to 1, every other token has probability 0.
    none_p, none_q = _all_of(e.p for e in entries), _all_of(e.q for e in entries)
    added = [WeighedRow(i, name, 0.0 if none_p else None, 0.0 if none_q else None) for i, name in names.items()]
    whole = [*entries, *(e for e in added if e.token_id not in given)]
    return [replace(e, raw_p=p.get(e.token_id), raw_q=q.get(e.token_id)) for e in whole]


def _chances_of(best: Iterable[Alternative], token_id: int, logprob: float | None) -> dict[int, float]:
    own = {} if logprob is None else {token_id: logprob}
    return {i: math.exp(min(0.0, value)) for i, value in ({a.token_id: a.logprob for a in best} | own).items()}


def _all_of(shares: Iterable[float | None]) -> bool:
    return sum(s or 0.0 for s in shares) >= 1 - 1e-9


def _with_residual(entries: Sequence[WeighedRow], overlap: float | None) -> list[WeighedRow]:
    return [replace(e, residual=residual(e.p, e.q, overlap)) for e in entries]


def _best(entries: Sequence[WeighedRow], by_settings: bool, always: Sequence[int]) -> tuple[WeighedRow, ...]:
    """The most probable tokens of either side, and always the tokens of the decision."""

    def weight(e: WeighedRow) -> float:
        pair = (e.p, e.q) if by_settings else (e.raw_p, e.raw_q)
        return max(share or 0.0 for share in pair)

    ordered = sorted(entries, key=lambda e: (e.token_id not in always, -weight(e), e.token_id))[:SHOWN]
    return tuple(sorted(ordered, key=lambda e: (-weight(e), e.token_id)))


def _rest(shown: Sequence[WeighedRow]) -> WeighedRow:
    """One row for all tokens that are not shown."""

    def left(shares: Sequence[float | None]) -> float | None:
        known = [share for share in shares if share is not None]
        return max(0.0, 1 - math.fsum(known)) if known and len(known) == len(shares) else None

    columns = [[getattr(e, name) for e in shown] for name in ("p", "q", "residual", "raw_p", "raw_q")]
    return WeighedRow(-1, "all others", *(left(column) for column in columns))
