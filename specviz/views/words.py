"""Numbers, tokens and reasons in words for a person. Everything here is plain text: never markup."""

from __future__ import annotations

import math
import re
import unicodedata

from specviz.core.errors import SpecvizError
from specviz.core.events import Error, FinishReason, Way
from specviz.core.settings import RuleName, Verification
from specviz.record.state import Node

NOT_KNOWN = "n/a"
MINUS = "\N{MINUS SIGN}"

FINISHES: dict[FinishReason, str] = {
    "stop_token": "the model ended its answer",
    "stop_string": "a stop string appeared",
    "max_tokens": "the token budget is used up",
    "context_full": "the context window is full",
    "stopped": "stopped by you",
}

#: How a round is verified, for the line above a run; whole rows are the ordinary case and need no word.
WAYS: dict[Way, str] = {
    "rows": "",
    "scoring": "scored by the server",
    "prefixes": "prefixes in one call",
    "generating": "server writes on its own",
}

#: What each way to verify means for whoever has to choose one.
VERIFICATIONS: dict[Verification, str] = {
    "auto": "The best way that the server can do and that is exact at these settings.",
    "scoring": "The server scores the drafted tokens in one call; each is kept with its exact probability.",
    "prefixes": "All prefixes of the block go in one call and the server draws a token behind each. Exact at any "
    "settings; bills the prompt K + 1 times.",
    "generating": "The server writes K + 1 tokens on its own; the draft stays while it is equal. Works everywhere, and "
    "saves nothing against streaming.",
}

#: Parts of a round's time that one word does not say.
PARTS: dict[str, str] = {"call": "server call (network and computing)"}


def part(name: str, *, simulated: bool = False) -> str:
    """A part of a round's time, for a legend; `simulated` where its network is."""
    return "network (simulated)" if simulated and name == "network" else PARTS.get(name, name)


def network(rtt_ms: float, jitter_ms: float) -> str:
    """Round trip and jitter of a simulated network; empty where there is none."""
    if not rtt_ms:
        return ""
    return f"{rtt_ms:g} ms" + (f" ± {jitter_ms:g} ms" if jitter_ms else "")


def number(value: float | None, digits: int = 2, unit: str = "") -> str:
    """A number with its unit; n/a where it is not known, so that "unknown" never looks like zero."""
    if value is None or math.isnan(value):
        return NOT_KNOWN
    if math.isinf(value):
        return "∞" if value > 0 else MINUS + "∞"
    text = f"{abs(value):,.{digits}f}"
    negative = value < 0 and any(c in "123456789" for c in text)
    return (MINUS if negative else "") + text + (f" {unit}" if unit else "")


def rounded(value: float | None, digits: int) -> float | str | None:
    """A number as the browser gets it, for `specviz.number` there: text where it is infinite, which JSON cannot say."""
    if value is None or math.isnan(value):
        return None
    return round(value, digits) if math.isfinite(value) else number(value)


def percent(share: float | None) -> str:
    """A share of one as a percentage."""
    return NOT_KNOWN if share is None else f"{100 * share:.0f} %"


def size(count: int) -> str:
    """A number of bytes as people read it."""
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB" if count >= 1e3 else f"{count} B"


def visible(text: str) -> str:
    """The text with what would be invisible or would reorder its surroundings made visible.

    Control characters become their Unicode pictures (a NUL is ␀), direction marks and overrides and lone surrogates
    their code points. Line ends, tabs and joiners, which belong to ordinary text and emoji, stay.
    """
    return "".join(map(_visible, text)) if not text.isascii() or not text.isprintable() else text


def exactly(text: str) -> str:
    """A whole text for a box that would cut space off its ends: line ends as ↵ and a new line, spaces there as ·."""
    lines = visible(text).replace("\n", "↵\n")
    inner = lines.strip(" ")
    begin, end = len(lines) - len(lines.lstrip(" ")), len(lines) - len(lines.rstrip(" "))
    return "·" * begin + inner + "·" * end if inner else "·" * len(lines)


def _visible(char: str) -> str:
    code = ord(char)
    if char in "\n\t":
        return char
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    kind = unicodedata.category(char)
    if kind == "Cs" or (kind == "Cf" and unicodedata.bidirectional(char) != "BN"):
        return f"⟨U+{code:04X}⟩"
    return char


def label(token: str, longest: int = 12) -> str:
    """A token in one short line: spaces as ·, line ends as ↵, long ones cut."""
    text = visible(token).replace(" ", "·").replace("\n", "↵").replace("\t", "⇥")
    return text if len(text) <= longest else text[: longest - 1] + "…"


def cut(name: str, longest: int = 80) -> str:
    """A name as a header shows it: a server may call its model anything."""
    return name if len(name) <= longest else name[: longest - 1] + "…"


def tooltip(node: Node) -> str:
    """All that is known about one token, a line each. Rounds and positions count from 1."""
    return "\n".join(
        (
            f"{label(node.token, 40)}   id {node.token_id}",
            f"{node.status} · round {node.round + 1}, position {node.position + 1}",
            f"draft log-probability   {number(node.draft_logprob, 3)}",
            f"target log-probability  {number(node.target_logprob, 3)}",
            f"acceptance probability  {number(node.acceptance_prob, 3)}",
            f"entropy                 {number(node.entropy, 2, 'bits')}",
        )
    )


def rule_in_words(rule: RuleName, temperature: float, tau: float) -> str:
    """What a rule does and what it leaves of the target's own output, in a sentence or two."""
    match rule:
        case "probabilistic":
            return (
                "Rejection sampling: keep a draft token with probability min(1, p/q), else draw from what is left of "
                "the target's distribution. EXACT: the output is the target's own, at any temperature."
            )
        case "deterministic":
            return (
                "The target draws its own token and the draft stays if it is the same. EXACT at any temperature, and "
                "keeps fewer tokens than rejection sampling."
            )
        case "greedy" if temperature == 0:
            return "Keep the draft while it is the target's most probable token. EXACT at temperature 0."
        case "greedy":
            return (
                "Keep the draft while it is the target's most probable token. LOSSY above temperature 0: the output is "
                "the target's greedy text, not a sample."
            )
        case "threshold":
            return (
                f"Keep a draft token whenever the target gives it at least τ = {tau:g}. LOSSY: faster, and the output "
                "is no longer the target's own."
            )


def complaint(error: SpecvizError | Error) -> str:
    """An error and what to do about it, as Markdown in which nothing of the message is markup."""
    lines = [f"**{escape_markdown(error.message)}**", escape_markdown(error.remedy)]
    return "\n\n".join(line for line in lines if line.strip("*"))


#: What Markdown would make a link of without being asked to.
_ADDRESS = re.compile(
    r"(?i)((?:\b(?:https?|ftp)://|\bwww\.)[^\s`*<>\[\]]*[^\s`*<>\[\].,;:!?)]|[\w.+-]+@[\w-]+\.[\w.-]*\w)"
)


def escape_markdown(text: str) -> str:
    """The text so that Streamlit's Markdown shows it letter by letter: no HTML, link, emphasis, maths or colour.

    An address is shown as code: no escape keeps Markdown from making a link of it.
    """
    flat = " ".join(visible(text).split())
    parts = _ADDRESS.split(flat)
    escaped = "".join(f"`{part}`" if i % 2 else _escaped(part) for i, part in enumerate(parts))
    return re.sub(r"^(\d+)\.", r"\1\\.", escaped)  # "1." would begin a list


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in r"\`*_{}[]()<>#+-!|$:~&^=" else c for c in text)
