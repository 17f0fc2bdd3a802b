"""Between a client and a server: a recorder that passes everything on, and a player that stands in for the server."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.targets.completions.rawserver import Got, Raw, send, serve_raw, whole

AGAIN = "Record again: see tests/real/README.md."
#: In a fingerprint: what machine it is.
_PLATFORM = re.compile(r'("system_fingerprint": ?"[^"]*?(?:Linux|macOS|Darwin|Windows))-[^"]*')
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer. Headers are never kept.

    Attributes:
        part: of the recording; answers are looked for in one part only.
        sent: JSON of the body; None for a GET. answer: JSON; a text for a stream.
    """

    part: str
    method: str
    path: str
    sent: Any
    status: int
    answer: Any

    @property
    def key(self) -> str:
        return _key(self.method, self.path, self.sent)


def _key(method: str, path: str, sent: Any) -> str:
    return f"{method} {path} {json.dumps(sent, sort_keys=True)}"


@dataclass
class Recorder:
    """Passes requests on to a server and keeps what was said.

    Args:
        base_url: of the server, ending in /v1.
        hidden: texts and what takes their place, in all that is kept.
    """

    base_url: str
    hidden: dict[str, str] = field(default_factory=dict)
    part: str = ""
    exchanges: list[Exchange] = field(default_factory=list)

    @contextmanager
    def serve(self) -> Iterator[str]:
        """The base URL to talk to."""
        with serve_raw(self._pass_on) as raw:
            yield raw.url

    def _pass_on(self, got: Got, sock: socket.socket, raw: Raw) -> bool:
        status, kind, data = self._ask(got)
        sent = json.loads(got.body) if got.body else None
        answer = _shortened(_parsed(data))
        # The client must see what will be played: a draw may hang on the last digit.
        data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        kept = _cut(answer) if got.method == "GET" else answer
        self.exchanges.append(Exchange(self.part, got.method, got.path, self._clean(sent), status, self._clean(kept)))
        return send(sock, whole(status, data, {"Content-Type": kind}))

    def _ask(self, got: Got) -> tuple[int, str, bytes]:
        headers = {"Content-Type": "application/json"} if got.body else {}
        if "authorization" in got.headers:
            headers["Authorization"] = got.headers["authorization"]
        connection = http.client.HTTPConnection(urlsplit(self.base_url).netloc, timeout=300)
        try:
            connection.request(got.method, got.path, got.body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get("Content-Type", "application/json"), answer.read()
        finally:
            connection.close()

    def _clean(self, value: Any) -> Any:
        text = json.dumps(value)
        for secret, instead in self.hidden.items():
            text = text.replace(json.dumps(secret)[1:-1], instead)
        return json.loads(text)


def _parsed(data: bytes) -> Any:
    """JSON, or the text of a stream; neither says what machine it comes from."""
    text = _PLATFORM.sub(r"\1", data.decode())
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shortened(value: Any) -> Any:
    """Numbers to what single precision holds."""
    if isinstance(value, dict):
        return {k: _shortened(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_shortened(v) for v in value]
    return round(value, 5) if isinstance(value, float) else value


def _cut(value: Any) -> Any:
    """What a server says about itself, without paths and chat templates."""
    if isinstance(value, dict):
        return {k: _cut(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_cut(v) for v in value]
    if isinstance(value, str) and (value.startswith(("/", "~")) or value.endswith(".gguf")):
        return "path"
    return value[:_LONGEST] if isinstance(value, str) else value


def without_context(exchange: Exchange, rows: int) -> Exchange:
    """The same without the alternatives of all prompt tokens but the last few, which nobody reads."""
    answer = exchange.answer
    for choice in answer.get("choices", []) if isinstance(answer, dict) else []:
        beside, block = choice.get("prompt_logprobs"), choice.get("logprobs")
        if not beside or not block:
            continue
        ids = choice["prompt_token_ids"]
        for at in range(1, len(beside) - rows):
            beside[at] = {str(ids[at]): beside[at][str(ids[at])]}
            tops = block["top_logprobs"]
            tops[at] = dict(list(tops[at].items())[:1])
    return exchange


class Player:
    """Answers a request that was recorded as it was answered then; equal requests in the order of the recording.

    Attributes:
        missing: requests that are not in the recording, shortened.
    """

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self._answers: dict[str, deque[Exchange]] = defaultdict(deque)
        for exchange in exchanges:
            self._answers[exchange.key].append(exchange)
        self.missing: list[str] = []

    @property
    def left(self) -> int:
        """Answers that nobody asked for."""
        return sum(map(len, self._answers.values()))

    @contextmanager
    def serve(self) -> Iterator[str]:
        """The base URL to talk to."""
        with serve_raw(self._play) as raw:
            yield raw.url

    def _play(self, got: Got, sock: socket.socket, raw: Raw) -> bool:
        key = _key(got.method, got.path, json.loads(got.body) if got.body else None)
        if not self._answers[key]:
            self.missing.append(key[:_LONGEST])
            return send(sock, whole(400, json.dumps({"error": {"message": f"Not recorded. {AGAIN}"}}).encode(), {}))
        exchange = self._answers[key].popleft()
        if isinstance(exchange.answer, str):
            return send(sock, whole(exchange.status, exchange.answer.encode(), {"Content-Type": "text/event-stream"}))
        return send(sock, whole(exchange.status, json.dumps(exchange.answer).encode(), {}))
