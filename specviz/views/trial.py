"""What a test of a target or a draft found out, in words and as a light."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol

from specviz.core.events import Error
from specviz.host.trial import TrialOutcome
from specviz.record.state import RunState
from specviz.views import words

Light = Literal["gray", "green", "orange", "red"]

#: The engines that a probe can tell, as people write them.
ENGINES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "llamacpp": "llama-server (llama.cpp)",
    "llama-cpp-python": "llama-cpp-python",
    "mlx": "mlx_lm.server",
    "cerebras": "Cerebras",
    "fireworks": "Fireworks",
    "together": "Together",
}
_ABLE = {"scoring": "scores given tokens", "prefixes": "takes prefixes in one call", "generating": "writes on its own"}
_LONGEST = 300


class Tested(Protocol):
    """A test as it stands: `check.Check`."""

    @property
    def live(self) -> bool:
        """Whether it goes on."""
        ...

    @property
    def result(self) -> TrialOutcome | None:
        """What came of it."""
        ...

    @property
    def error(self) -> Error | None:
        """Why it failed."""
        ...


def light(check: Tested | None) -> tuple[Light, str]:
    """Colour and word: not tried, answers, answers with a limit, failed."""
    if check is not None and check.live:
        return "gray", "trying"
    if check is not None and check.error is not None:
        return "red", "failed"
    if check is None or check.result is None:
        return "gray", "not tried"
    return ("orange", "limited") if limits(check.result) else ("green", "answers")


#: Errors of a run that say something of the server.
_OF_THE_SERVER = ("RefusedError", "UnreachableError", "AnswerError")


def light_of_run(state: RunState, before: tuple[Light, str]) -> tuple[Light, str, str]:
    """Colour, word and a sentence after a run of the same target; the light from before where it tells nothing new.

    A run that failed at the server says more than a test before it; one that went well only where there was no test.
    """
    if state.error is not None and state.error.kind in _OF_THE_SERVER:
        return "red", "failed", "In the last run: see what it says there."
    if state.rounds and before[1] == "not tried":
        return "green", "answers", "In the last run."
    return *before, ""


def limits(result: TrialOutcome) -> list[str]:
    """What keeps a target or a draft that answers from doing all that is wanted, in sentences."""
    said = [result.note] if result.note else []
    found = result.findings
    if found is not None:
        if found.ways == ("generating",):
            said.append("It only generates, so speculating with it saves nothing against streaming.")
        if not found.same_tokens:
            said.append("Its tokenizer is not the one that is used here.")
    promise = result.guarantee
    if promise is not None and promise.kind == "UNKNOWN":
        said.append(promise.reason)
    if result.what == "target" and not result.text.strip():
        said.append("It wrote no text.")
    return said


def timing(result: TrialOutcome) -> str:
    """Latency and speed in one line; a part that is not known is left out."""
    parts = []
    if result.latency_ms is not None:
        parts.append(f"{words.number(result.latency_ms, 0 if result.latency_ms >= 10 else 1)} ms to the first token")
    if result.tokens_per_second is not None:
        digits = 0 if result.tokens_per_second >= 100 else 1
        parts.append(f"{words.number(result.tokens_per_second, digits)} tokens/s")
    return ", ".join(parts)


def first_words(result: TrialOutcome) -> str:
    """What it wrote, in one line, quoted; empty for nothing."""
    flat = " ".join(words.visible(result.text).split())
    return f"“{words.label(flat, 90).replace('·', ' ')}”" if flat else ""


def findings(found: Any) -> list[tuple[str, str]]:
    """What a server can do: name and value, for a table. `found` is `targets.remote.values.Findings`."""
    engine = ENGINES.get(found.engine, "not told apart") + (f" {found.version}" if found.version else "")
    rows = [
        ("Server", engine),
        ("Model", found.model or words.NOT_KNOWN),
        ("Context", f"{found.max_context:,} tokens" if found.max_context else words.NOT_KNOWN),
        ("Ways to verify", "; ".join(_ABLE[way] for way in found.ways)),
        ("Token ids", _both("takes them", found.ids_in, "says them", found.ids_out)),
        ("Top log-probabilities", _top(found)),
    ]
    if found.bos_added:
        rows.append(("Beginning of text", "added by the server"))
    if found.latency_ms is not None:
        rows.append(("Cheapest call", f"{words.number(found.latency_ms, 0)} ms"))
    return [(name, _short(value)) for name, value in rows]


def notes(found: Any) -> list[str]:
    """What was tried and what came of it."""
    return [_short(note) for note in found.notes]


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Name and value as a Markdown list in which nothing is markup."""
    lines = (f":small[:gray[{words.escape_markdown(name)}:] {words.escape_markdown(value)}]" for name, value in rows)
    return "  \n".join(lines)


def _top(found: Any) -> str:
    if not found.top:
        return "none"
    scale = {True: ", after temperature", False: ", before temperature", None: ""}[found.after_temperature]
    return f"{found.top} per position{scale}"


def _both(one: str, has_one: bool, other: str, has_other: bool) -> str:
    able = [what for what, has in ((one, has_one), (other, has_other)) if has]
    return " and ".join(able) or "neither taken nor said"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
