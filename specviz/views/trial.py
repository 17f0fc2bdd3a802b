"""The result of a test of a target or a draft, in words and as a coloured light."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol

from specviz.core.events import Error
from specviz.host.trial import TrialOutcome
from specviz.record.state import RunState
from specviz.views import words

Light = Literal["gray", "green", "orange", "red"]

#: The servers that a probe can recognise, with their usual names.
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
_ABLE = {"scoring": "scores given tokens", "prefixes": "takes prefixes in one call", "generating": "generates"}
_LONGEST = 300


class Tested(Protocol):
    """A test of a target or a draft: `host.check.Check`."""

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
    """Colour and word: not tried, answers, limited, failed."""
    if check is not None and check.live:
        return "gray", "testing"
    if check is not None and check.error is not None:
        return "red", "failed"
    if check is None or check.result is None:
        return "gray", "not tested"
    return ("orange", "limited") if limits(check.result) else ("green", "answers")


#: Errors of a run that are about the server.
_OF_THE_SERVER = ("RefusedError", "UnreachableError", "AnswerError")


def light_of_run(state: RunState, before: tuple[Light, str]) -> tuple[Light, str, str]:
    """Colour, word and a sentence after a run of the same target; the light from before where the run adds nothing.

    A run that failed at the server replaces the result of an earlier test; a successful run only a missing one.
    """
    if state.error is not None and state.error.kind in _OF_THE_SERVER:
        return "red", "failed", "In the last run: see its error."
    if state.rounds and before[1] == "not tested":
        return "green", "answers", "In the last run."
    return *before, ""


def limits(result: TrialOutcome) -> list[str]:
    """What a target or a draft that answers cannot do, in sentences."""
    sentences = [result.note] if result.note else []
    found = result.findings
    if found is not None:
        if found.ways == ("generating",):
            sentences.append("It can only generate, so speculation saves nothing against streaming.")
        if not found.same_tokens:
            sentences.append("Its tokenizer is not the one used here.")
    promise = result.guarantee
    if promise is not None and promise.kind == "UNKNOWN":
        sentences.append(promise.reason)
    if result.what == "target" and not result.text.strip():
        sentences.append("It generated no text.")
    return sentences


def timing(result: TrialOutcome) -> str:
    """Latency and speed in one line, without what is not known."""
    parts = []
    if result.latency_ms is not None:
        parts.append(f"{words.number(result.latency_ms, 0 if result.latency_ms >= 10 else 1)} ms to the first token")
    if result.tokens_per_second is not None:
        digits = 0 if result.tokens_per_second >= 100 else 1
        parts.append(f"{words.number(result.tokens_per_second, digits)} tokens/s")
    return ", ".join(parts)


def first_words(result: TrialOutcome) -> str:
    """The generated text in one line, quoted; empty where there is none."""
    flat = " ".join(words.visible(result.text).split())
    return f"“{words.label(flat, 90).replace('·', ' ')}”" if flat else ""


def findings(found: Any) -> list[tuple[str, str]]:
    """What a server can do: name and value, for a table. `found` is `targets.completions.values.Findings`."""
    engine = ENGINES.get(found.engine, "not recognised") + (f" {found.version}" if found.version else "")
    rows = [
        ("Server", engine),
        ("Model", found.model or words.NOT_KNOWN),
        *([("Answers as", found.answers_as)] if found.answers_as not in ("", found.model) else []),
        ("Context", f"{found.max_context:,} tokens" if found.max_context else words.NOT_KNOWN),
        ("Ways to verify", "; ".join(_ABLE[way] for way in found.ways)),
        ("Token ids", _both("accepted", found.ids_in, "returned", found.ids_out)),
        ("Top log-probabilities", _top(found)),
    ]
    if found.bos_added:
        rows.append(("Beginning of text", "added by the server"))
    if found.latency_ms is not None:
        rows.append(("Cheapest call", f"{words.number(found.latency_ms, 0)} ms"))
    return [(name, _short(value)) for name, value in rows]


def notes(found: Any) -> list[str]:
    """What was tested, and the results."""
    return [_short(note) for note in found.notes]


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values as Markdown lines. Nothing in them is read as markup."""
    lines = (f":small[:gray[{words.escape_markdown(name)}:] {words.escape_markdown(value)}]" for name, value in rows)
    return "  \n".join(lines)


def _top(found: Any) -> str:
    if not found.top:
        return "none"
    scale = {True: ", after temperature", False: ", before temperature", None: ""}[found.after_temperature]
    return f"{found.top} per position{scale}"


def _both(one: str, has_one: bool, other: str, has_other: bool) -> str:
    able = [what for what, has in ((one, has_one), (other, has_other)) if has]
    return " and ".join(able) or "neither accepted nor returned"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
