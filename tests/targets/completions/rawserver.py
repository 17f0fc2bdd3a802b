"""A server on the loopback that sends the bytes that a test gives it, and keeps the requests."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Got:
    """One request. `headers`: lower-case names."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        body: dict[str, object] = json.loads(self.body)
        return body


@dataclass
class Raw:
    """The server, as a handler sees it.

    Attributes:
        got: every request, in order.
        stopping: set when the server ends; whoever stalls waits on it.
        gone: set when a client went away while a handler stalled.
    """

    url: str
    got: list[Got] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)
    sockets: set[socket.socket] = field(default_factory=set)


#: Answers one request on its socket, and returns whether to keep the connection.
Handler = Callable[[Got, socket.socket, Raw], bool]


def answer(status: int = 200, body: object = None, headers: dict[str, str] | None = None, reason: str = "X") -> Handler:
    """A complete answer; a body that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    return lambda got, sock, raw: send(sock, whole(status, data, headers or {}, reason))


def whole(status: int, data: bytes, headers: dict[str, str], reason: str = "X") -> bytes:
    lines = {"Content-Type": "application/json", "Content-Length": str(len(data))} | headers
    head = "".join(f"{k}: {v}\r\n" for k, v in lines.items() if v)
    return f"HTTP/1.1 {status} {reason}\r\n{head}\r\n".encode() + data


def events(*parts: bytes | str, end: bool = True, framed: bool = False) -> Handler:
    """A stream of server-sent events: it ends with the connection, or is chunked (`framed`)."""

    def handle(got: Got, sock: socket.socket, raw: Raw) -> bool:
        how = "Transfer-Encoding: chunked\r\n" if framed else "Connection: close\r\n"
        send(sock, f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{how}\r\n".encode())
        for part in [*parts, *(["[DONE]"] if end else [])]:
            line = b"data: " + (part.encode() if isinstance(part, str) else part) + b"\n\n"
            send(sock, f"{len(line):x}\r\n".encode() + line + b"\r\n" if framed else line)
        if framed:
            send(sock, b"0\r\n\r\n")
        return framed

    return handle


def bytes_then_close(data: bytes) -> Handler:
    """These bytes, and the end of the connection."""

    def handle(got: Got, sock: socket.socket, raw: Raw) -> bool:
        send(sock, data)
        return False

    return handle


def reset(got: Got, sock: socket.socket, raw: Raw) -> bool:
    """No answer, and a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def stall(got: Got, sock: socket.socket, raw: Raw) -> bool:
    """No answer, until the client closes or the server ends."""
    sock.settimeout(0.05)
    while not raw.stopping.is_set():
        try:
            if not sock.recv(1):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    raw.gone.set()
    return False


def send(sock: socket.socket, data: bytes) -> bool:
    """Whether the data could be sent; a client that has closed is no error."""
    try:
        sock.sendall(data)
    except OSError:
        return False
    return True


@contextmanager
def serve_raw(handlers: Sequence[Handler] | Handler) -> Iterator[Raw]:
    """Answer each request by the next handler, the last one for all that follow."""
    listener = socket.create_server(("127.0.0.1", 0))
    raw = Raw(f"http://127.0.0.1:{listener.getsockname()[1]}/v1")
    queue = [handlers] if callable(handlers) else list(handlers)
    lock = threading.Lock()
    threads: list[threading.Thread] = []

    def next_handler() -> Handler:
        with lock:
            return queue.pop(0) if len(queue) > 1 else queue[0]

    def connection(sock: socket.socket) -> None:
        with sock, suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while (got := read_request(sock)) is not None:
                raw.got.append(got)
                if not next_handler()(got, sock, raw):
                    break
        raw.sockets.discard(sock)

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            raw.sockets.add(sock)
            threads.append(threading.Thread(target=connection, args=(sock,)))
            threads[-1].start()

    acceptor = threading.Thread(target=accept)
    acceptor.start()
    try:
        yield raw
    finally:
        raw.stopping.set()
        for sock in (listener, *list(raw.sockets)):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        acceptor.join(10)
        for thread in threads:
            thread.join(10)
        listener.close()


def read_request(sock: socket.socket) -> Got | None:
    """The next request on a connection; None where there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            return None
        data += more
        if data[:1] == b"\x16":  # TLS, which it does not speak
            return None
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        more = sock.recv(65536)
        if not more:
            return None
        body += more
    method, path, _ = first.split(" ")
    return Got(method, path, headers, body)
