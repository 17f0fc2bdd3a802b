"""A Hugging Face hub on this machine, with the two requests that a download takes: the list of files, and a file."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

COMMIT = "c" * 40


@dataclass
class FakeHub:
    """Files by repository and name.

    Attributes:
        served: requests of contents: name of the file, and the first byte asked for.
        cut_after: bytes of one answer, after which the connection ends; None for whole answers. Counts down `cuts`.
        lie: name of a file → the SHA-256 that is said of it.
        hold_after: bytes of the first answer, after which the connection is held open; None for whole answers.
    """

    files: dict[str, dict[str, bytes]]
    served: list[tuple[str, int]] = field(default_factory=list)
    cut_after: int | None = None
    cuts: int = 0
    lie: dict[str, str] = field(default_factory=dict)
    hold_after: int | None = None
    address: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    def sha256(self, repo: str, name: str) -> str:
        return self.lie.get(name) or hashlib.sha256(self.files[repo][name]).hexdigest()

    def listing(self, repo: str) -> dict[str, Any]:
        files = self.files[repo]
        return {
            "id": repo,
            "sha": COMMIT,
            "siblings": [
                {
                    "rfilename": name,
                    "size": len(data),
                    "blobId": "b" * 40,
                    "lfs": {"sha256": self.sha256(repo, name), "size": len(data), "pointerSize": 134},
                }
                for name, data in files.items()
            ],
        }


@contextmanager
def fake_hub(files: dict[str, dict[str, bytes]], cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """Serve these files, and let the hub's client use this hub and an empty cache."""
    hub = FakeHub(files)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, body: bool) -> None:
            path = self.path.partition("?")[0]
            if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)", path):
                repo = match[1]
                if repo not in hub.files:
                    self.say(404, b"", {"X-Error-Code": "RepoNotFound"})
                else:
                    self.say(200, json.dumps(hub.listing(repo)).encode(), {"Content-Type": "application/json"})
                return
            match = re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path)
            assert match, path
            repo, name = match[1], match[2]
            data = hub.files[repo][name]
            first = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
            headers = {"ETag": f'"{hub.sha256(repo, name)}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
            if not body:
                self.say(200, data, headers, send=False)
                return
            hub.served.append((name, first))
            if first:
                headers["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
            self.say(206 if first else 200, data[first:], headers)

        def say(self, status: int, data: bytes, headers: dict[str, str], send: bool = True) -> None:
            self.send_response(status)
            for key, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            if not send or self.command == "HEAD":
                return
            if hub.hold_after is not None and "X-Repo-Commit" in headers:
                self.wfile.write(data[: hub.hold_after])
                hub.hold_after = None
                self.wfile.flush()
                hub.over.wait(60)
                self.end()
                return
            cut = hub.cut_after is not None and hub.cuts > 0 and "X-Repo-Commit" in headers
            self.wfile.write(data[: hub.cut_after] if cut else data)
            if cut:
                hub.cuts -= 1
                self.wfile.flush()
                self.end()

        def end(self) -> None:
            with suppress(OSError):  # the other side may be gone
                self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    address = hub.address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    # A large file comes in many pieces, as it does from the real hub.
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    try:
        yield hub
    finally:
        hub.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
