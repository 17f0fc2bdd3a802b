"""The output as spans, one per token, in deltas that end where a character ends.

A token may be part of a character: an emoji is often two tokens. Such tokens are sent together: the first span holds
the character, the others are marked and empty, and each has its own tooltip. Bytes at the end of the text that do not
make a character yet are held back; if the rest never comes, they are shown as named chips, never as replacement
characters.

Of each token only a list of values is sent; the browser builds the tooltip from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specviz.record.state import EMITTED, Node, RunState
from specviz.views import words
from specviz.views.feed import Delta


def delta(state: RunState, run: str, base: int) -> Delta:
    """Groups of tokens after the first `base` ones. `to` counts tokens, and never splits a character."""
    to, items = base, []
    for group in _groups([state.nodes[i] for i in state.text[base:]], at_end=state.finished):
        items.append({"at": to, **_item(*group)})
        to += len(group[0])
    return {"run": run, "from": base, "to": to, "items": items}


def _groups(nodes: list[Node], *, at_end: bool) -> Iterator[tuple[list[Node], str | None]]:
    """Shortest sequences of tokens that decode on their own, with their text; None where bytes make no character."""
    waiting: list[Node] = []
    for node in nodes:
        special = not node.token_bytes
        joined = _decode(waiting + [node]) if not special else None
        if isinstance(joined, str):
            yield waiting + [node], joined
            waiting = []
        elif joined is Incomplete:
            waiting.append(node)
        else:
            # What waited can never become a character; the new token may still decode on its own.
            yield from (([w], None) for w in waiting)
            alone = None if special else _decode([node])
            waiting = [node] if alone is Incomplete else []
            if not waiting:
                yield [node], alone if isinstance(alone, str) else None
    if at_end:
        yield from (([w], None) for w in waiting)


class Incomplete:
    """Stands for bytes that are the beginning of a character."""


def _decode(nodes: list[Node]) -> str | type[Incomplete] | None:
    """The text; `Incomplete` when more bytes may complete it; None when none can."""
    data = b"".join(n.token_bytes for n in nodes)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Incomplete if error.reason == "unexpected end of data" else None


def _item(nodes: list[Node], text: str | None) -> dict[str, Any]:
    """One group for the browser. A chip shows a name in a box: a special token, or bytes that are no character."""
    if text is None:
        name = nodes[0].token or nodes[0].token_bytes.hex(" ") or "(empty)"
        return {"chip": words.label(name, 40), "tokens": [_facts(nodes[0])]}
    names = [words.label(n.token, 40) for n in nodes] if len(nodes) > 1 else []
    return {"text": words.visible(text), "tokens": [_facts(n) for n in nodes]} | ({"names": names} if names else {})


def _facts(node: Node) -> list[Any]:
    """Node id, status, round, position, token id; log-probability of draft and target, acceptance probability, bits."""
    scores = (node.draft_logprob, node.target_logprob, node.acceptance_prob, node.entropy)
    return [
        node.id,
        node.status,
        node.round,
        node.position,
        node.token_id,
        *(words.rounded(score, 3) for score in scores),
    ]


def place(state: RunState, chosen: int | None) -> int | None:
    """The node of the text for a chosen one: itself, or the token that replaced a dropped draft token."""
    if chosen is None or state.nodes[chosen].status in EMITTED:
        return chosen
    # The resampled token comes after the draft tokens of its round.
    for i in range(chosen + 1, len(state.nodes)):
        node = state.nodes[i]
        if node.round != state.nodes[chosen].round:
            break
        if node.status == "resampled":
            return i
    return None
