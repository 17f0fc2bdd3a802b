"""What is known about one decision, as data for the inspector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from specviz.record.state import Node, RunState
from specviz.views import words
from specviz.views.feed import Delta
from specviz.views.palette import LOOKS
from specviz.views.reasons import Terms, chances, why
from specviz.views.weighed import Table, WeighedRow, table

_LONGEST = 40
_SIBLINGS = {"rejected": "The token drawn in its place", "resampled": "The rejected draft token"}


def detail(state: RunState, node_id: int) -> dict[str, Any]:
    """What the inspector shows of one node. All texts are plain text."""
    node = state.nodes[node_id]
    terms = Terms.of(state, node.round)
    made = table(state, node)
    return {
        "id": node.id,
        "status": node.status,
        "token": words.label(node.token, _LONGEST),
        "place": f"round {node.round + 1}, position {node.position + 1}",
        "meaning": LOOKS[node.status].meaning,
        "sentence": why(state, node, made.residual_of(node.token_id) if node.status == "resampled" else None),
        "scale": scale(node, terms),
        "table": _table(made, terms),
        "facts": [[name, value] for name, value in facts(node, made, terms)],
        "go": _neighbours(state, node),
    }


def scale(node: Node, terms: Terms) -> dict[str, Any] | None:
    """The line from 0 to 1: the part that means "kept", and where the deciding number lies on it."""
    bar, u = node.acceptance_prob, node.u
    if node.status not in ("accepted", "rejected") or terms.greedy:
        return None
    if terms.rule == "threshold":
        if node.p is None or terms.tau is None:
            return None
        p, tau = chances(node.p, terms.tau)
        return {"from": terms.tau, "to": 1.0, "at": node.p, "label": f"Kept if p is at least τ = {tau}; p = {p}."}
    if bar is None:
        return None
    if u is None:
        return {"from": 0.0, "to": bar, "at": None, "label": f"Kept with probability {chances(bar)[0]}."}
    text_bar, text_u = chances(bar, u)
    if bar == 1:
        return {"from": 0.0, "to": 1.0, "at": u, "label": f"Always kept; u = {text_u} was drawn."}
    return {"from": 0.0, "to": bar, "at": u, "label": f"Kept if u is below {text_bar}; u = {text_u} was drawn."}


def facts(node: Node, made: Table, terms: Terms) -> list[tuple[str, str]]:
    """The numbers of a node by name, n/a where they are not known."""
    entry = next((e for e in made.entries if e.token_id == node.token_id), WeighedRow(node.token_id, node.token))
    p, q = ("target p(x)", _share(entry.p)), ("draft q(x)", _share(entry.q))
    logprob_p = ("target log-probability", words.number(node.target_logprob, 3))
    logprob_q = ("draft log-probability", words.number(node.draft_logprob, 3))
    entropy = ("entropy", words.number(node.entropy, 2, "bits"))
    match node.status:
        case "bonus":
            return [p, logprob_p, entropy]
        case "resampled":
            residual = [("residual, max(0, p \N{MINUS SIGN} q) scaled", _share(entry.residual))]
            return [q, p, *(residual if entry.residual is not None else []), logprob_p, entropy]
        case "pending" | "ignored":
            return [q, logprob_q, ("draft entropy", entropy[1])]
    rejection = terms.rule == "probabilistic"
    kept = ("min(1, p/q)" if rejection else "acceptance probability", _share(node.acceptance_prob))
    drawn = [("u, drawn", _share(node.u))] if rejection else []
    average = [("expected acceptance, Σ min(p, q)", _share(node.overlap))] if rejection else []
    return [q, p, kept, *drawn, *average, logprob_q, logprob_p, entropy]


def _share(value: float | None) -> str:
    if value is None or value in (0, 1):
        return words.NOT_KNOWN if value is None else f"{value:.0f}"
    return f"{value:.4f}" if 1e-3 <= value < 0.99995 else f"{value:.6g}"


class _Column(NamedTuple):
    kind: str
    name: str
    field: str


_BY_SETTINGS = (
    _Column("q", "draft q", "q"),
    _Column("p", "target p", "p"),
    _Column("residual", "residual", "residual"),
)
_RAW = (_Column("q", "draft", "raw_q"), _Column("p", "target", "raw_p"))


def _table(made: Table, terms: Terms) -> dict[str, Any]:
    columns = [
        c for c in (_BY_SETTINGS if made.by_settings else _RAW) if any(_of(e, c) is not None for e in made.entries)
    ]
    rows = [_row(e, columns) | _marks(e, made) for e in made.entries]
    rest = {"token": made.rest.token, "cells": _cells(made.rest, columns), "rest": True}
    return {
        "caption": _caption(made, terms),
        "columns": [[c.kind, c.name] for c in columns],
        "rows": [*rows, rest] if columns else [],
    }


def _row(entry: WeighedRow, columns: list[_Column]) -> dict[str, Any]:
    return {
        "token": words.label(entry.token, _LONGEST),
        "cells": _cells(entry, columns),
        "p": _short(entry.p),
        "q": _short(entry.q),
        "residual": _short(entry.residual),
    }


def _cells(entry: WeighedRow, columns: list[_Column]) -> list[list[Any]]:
    """Per column, how full its bar is, and the text beside it."""
    shares = [_of(entry, c) for c in columns]
    return [[None if share is None else round(share, 4), _in_a_cell(share)] for share in shares]


def _short(share: float | None) -> float | None:
    return None if share is None else float(f"{share:.6g}")


def _marks(entry: WeighedRow, made: Table) -> dict[str, Any]:
    return {"draft": entry.token_id == made.draft_id, "final": entry.token_id == made.final_id}


def _of(entry: WeighedRow, column: _Column) -> float | None:
    value: float | None = getattr(entry, column.field)
    return value


def _in_a_cell(share: float | None) -> str:
    """Three digits; a value that would wrongly round to 0 or 1 is marked with < or >."""
    if share is None or share in (0, 1):
        return words.NOT_KNOWN if share is None else f"{share:.0f}"
    return "<0.001" if share < 0.001 else ">0.999" if share > 0.999 else f"{share:.3f}"


def _caption(made: Table, terms: Terms) -> str:
    if made.by_settings:
        heat = "" if terms.temperature is None else f" (temperature {terms.temperature:g})"
        return f"Probabilities after the sampling settings{heat}"
    if terms.temperature == 0:
        return "Probabilities before temperature 0 leaves only the most probable token"
    return "Probabilities before the sampling settings"


def _neighbours(state: RunState, node: Node) -> dict[str, Any]:
    """Where the buttons lead: along the output, and between a rejected token and the one drawn in its place."""

    def at(index: int) -> int | None:
        return state.text[index] if 0 <= index < len(state.text) else None

    return {
        "previous": at(node.index - 1),
        "next": at(node.index + 1),
        "sibling": node.sibling,
        "to_sibling": _SIBLINGS.get(node.status, ""),
    }


@dataclass(slots=True)
class InspectorView:
    """Counts a revision for every change of what is shown, so that a poll without a change costs nothing."""

    _rev: int = 0
    _run: str = ""
    _seen: tuple[object, ...] = ()
    _shown: dict[str, Any] | None = None

    def delta(self, state: RunState, run: str, base: int, selected: int | None) -> Delta:
        """The detail of the selected node, if the browser does not have it as it is now."""
        if run != self._run:
            self._run, self._rev, self._seen, self._shown = run, 0, (), None
        seen = _versions(state, selected)
        if seen != self._seen:
            now = None if selected is None else detail(state, selected)
            self._rev += now != self._shown
            self._seen, self._shown = seen, now
        items = [self._shown] if self._shown is not None and base < self._rev else []
        return {"run": run, "from": base, "to": self._rev, "items": items}


def _versions(state: RunState, selected: int | None) -> tuple[object, ...]:
    """Changes whenever a detail may: a node is judged, the next token exists, or the run ends."""
    if selected is None:
        return ()
    node = state.nodes[selected]
    return selected, node.status, len(state.text) > node.index + 1, state.done is not None
