"""The JSON form of events, as traces hold it; events of specviz 0.1 and 0.2 are read too."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from specviz.core import codec
from specviz.core.errors import TraceError
from specviz.core.events import BaselineKind, Done, DraftToken, Error, Event, Metrics, RunStarted, VerifyResult

_KINDS: dict[str, type[Any]] = {k.type: k for k in (RunStarted, DraftToken, VerifyResult, Metrics, Done, Error)}

#: Fields whose JSON form is not msgspec's own: bytes are hexadecimal, and the log-probability of an impossible token is
#: -inf, which JSON cannot represent as a number.
_BYTES = ("token_bytes", "final_token_bytes")
_LOGPROBS = ("logprob", "draft_logprob", "target_logprob", "final_logprob")
_IMPOSSIBLE = "-inf"


def to_json(event: Event) -> dict[str, Any]:
    """The event as JSON-ready data: its type, then its fields. `from_json` returns an equal event."""
    data: dict[str, Any] = {"type": event.type} | codec.to_json(event)
    if not isinstance(event, DraftToken | VerifyResult):
        return data
    for name in _BYTES:
        if data.get(name) is not None:
            data[name] = data[name].hex()
    for name in _LOGPROBS:
        if data.get(name) == -inf:
            data[name] = _IMPOSSIBLE
    if event.top_tokens and any(row[2] == -inf for row in data["top_tokens"]):
        data["top_tokens"] = [
            (*row[:2], _IMPOSSIBLE if row[2] == -inf else row[2], row[3]) for row in data["top_tokens"]
        ]
    return data


def from_json(data: Mapping[str, Any]) -> Event:
    """The inverse of `to_json`. Unknown fields, from a newer version, are ignored.

    Raises:
        TraceError: unknown type, or a field is missing, malformed or out of range.
    """
    kind = _KINDS.get(str(data.get("type")))
    if kind is None:
        raise TraceError(f"Unknown event type {data.get('type')!r}.", "It may come from a newer specviz.")
    try:
        event: Event = codec.from_json(_with_numbers(_as_today(data)), kind)
    except (TypeError, ValueError, LookupError) as exc:
        raise TraceError(f"A {kind.type} event is malformed: {exc}.", "The recording is damaged there.") from exc
    return event


def _with_numbers(data: dict[str, Any]) -> dict[str, Any]:
    """Convert bytes and -inf back from their JSON form."""
    for name in _BYTES:
        if data.get(name) is not None:
            data[name] = bytes.fromhex(data[name])
    for name in _LOGPROBS:
        if data.get(name) == _IMPOSSIBLE:
            data[name] = -inf
    rows = data.get("top_tokens", ())
    if any(row[2] == _IMPOSSIBLE for row in rows):
        data["top_tokens"] = [[*row[:2], -inf if row[2] == _IMPOSSIBLE else row[2], *row[3:]] for row in rows]
    return data


def _as_today(data: Mapping[str, Any]) -> dict[str, Any]:
    """An event of specviz 0.1 or 0.2 with the fields that it would have today.

    These versions wrote "rows" as the way of an in-process target. They did not record the kind of a baseline; it is
    derived from the speeds: when the stream of a server could not be counted, both speeds were the same.
    """
    today = dict(data)
    if "candidates" in today:
        today.setdefault("weighed", today.pop("candidates"))
    if today["type"] == RunStarted.type and "place" not in today:
        way, plain = today.get("way", "rows"), today.get("baseline_tps")
        here = way == "rows"
        today["place"], today["way"] = ("here", None) if here else ("completions", way)
        kind: BaselineKind = (
            "separate_run" if here else "per_call" if plain == today.get("per_call_tps") else "streaming"
        )
        today["baseline_kind"] = None if plain is None else kind
    return today
