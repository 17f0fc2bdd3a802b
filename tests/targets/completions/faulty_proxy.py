"""A proxy on the loopback that spoils what passes through it, by a plan."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

import numpy as np

from tests.targets.completions.rawserver import Got, Handler, Raw, reset, send, serve_raw, stall, whole

#: Faults that pass: whoever asks again gets the answer.
PASSING = ("reset_before", "reset_after", "stall", "busy", "unavailable", "truncated", "silent", "slow")
#: And those after which the answer cannot be had: asking again is not worth it.
FATAL = ("page", "garbage")


#: A stall lasts as long as the client waits: in tests it comes seldom.
_WEIGHTS = np.array([0.25 if name == "stall" else 1.0 for name in PASSING])


def plan(seed: int, faulty: float = 0.3, fatal: float = 0.01) -> Iterator[str]:
    """Endless: "" for a request that nothing happens to, else the name of a fault."""
    rng = np.random.default_rng(seed)
    while True:
        u = rng.random()
        if u < fatal:
            yield str(rng.choice(FATAL))
        elif u < fatal + faulty:
            yield str(rng.choice(PASSING, p=_WEIGHTS / _WEIGHTS.sum()))
        else:
            yield ""


@contextmanager
def serve_faulty(upstream: str, faults: Iterator[str]) -> Iterator[tuple[Raw, list[str]]]:
    """The proxy in front of a base URL, and the faults that happened so far."""
    happened: list[str] = []
    made = {name: _handler(name, upstream) for name in ("", *PASSING, *FATAL)}

    def handle(got: Got, sock: socket.socket, raw: Raw) -> bool:
        fault = next(faults)
        if fault:
            happened.append(fault)
        return made[fault](got, sock, raw)

    with serve_raw(handle) as raw:
        yield raw, happened


def _handler(fault: str, upstream: str) -> Handler:
    def forwarded(got: Got, sock: socket.socket, raw: Raw) -> bool:
        return send(sock, _forward(upstream, got))

    def reset_after(got: Got, sock: socket.socket, raw: Raw) -> bool:
        _forward(upstream, got)
        return reset(got, sock, raw)

    def truncated(got: Got, sock: socket.socket, raw: Raw) -> bool:
        data = _forward(upstream, got)
        send(sock, data[: data.index(b"\r\n\r\n") + 4 + len(data) // 3])
        return False

    def silent(got: Got, sock: socket.socket, raw: Raw) -> bool:
        return False

    def slow(got: Got, sock: socket.socket, raw: Raw) -> bool:
        data = _forward(upstream, got)
        at = len(data) - 40
        return send(sock, data[:at]) and all(send(sock, _late(raw, data[i : i + 1])) for i in range(at, len(data)))

    def written(status: int, body: bytes, headers: dict[str, str]) -> Handler:
        return lambda got, sock, raw: send(sock, whole(status, body, headers))

    return {
        "": forwarded,
        "reset_before": reset,
        "reset_after": reset_after,
        "stall": stall,
        "busy": written(429, b'{"error": {"message": "too many requests"}}', {"Retry-After-Ms": "5"}),
        "unavailable": written(503, b"<html><title>503 Service Unavailable</title></html>", {"Retry-After": "0"}),
        "truncated": truncated,
        "silent": silent,
        "slow": slow,
        "page": written(200, b"<html><body>Please log in.</body></html>", {"Content-Type": "text/html"}),
        "garbage": written(200, b'{"choices": [{"text": \xff', {}),
    }[fault]


def _late(raw: Raw, data: bytes) -> bytes:
    raw.stopping.wait(0.001)
    return data


def _forward(upstream: str, got: Got) -> bytes:
    """The answer of the server behind, as one piece of bytes with its length said."""
    address = urlsplit(upstream)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=10)
    try:
        connection.request(got.method, got.path, got.body, {k: v for k, v in got.headers.items() if k != "host"})
        answer = connection.getresponse()
        data = answer.read()
        return whole(answer.status, data, {"Content-Type": answer.headers.get("Content-Type", "")})
    finally:
        connection.close()


def counted(happened: Sequence[str]) -> dict[str, int]:
    """How often each fault happened."""
    return {name: list(happened).count(name) for name in (*PASSING, *FATAL)}
