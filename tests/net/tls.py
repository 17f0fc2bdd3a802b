"""An https server on the loopback, with a certificate that only tests trust."""

from __future__ import annotations

import http.server
import ssl
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Made for these tests: for 127.0.0.1 and localhost, signed by itself.
_CERTIFICATE = (
    "MIIBmzCCAUGgAwIBAgIUXWi6XUbzlVbxiAALHkz23QE5mnQwCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2"
    "MTEyOTA2MzYyMFoYDzIxMjYxMTA1MDYzNjIwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC"
    "AAQc9Gsx1tVgIvW9mIC6WJQ2UhNgSPiHw8byNDPFpp3iAZbO8+w6fVoXqnLX2ZWkMTH91jk/kiSmASpBygrnwrR5o28wbTAdBgNV"
    "HQ4EFgQUWLuc22wRahjM5hTbThZbXVxy3rswHwYDVR0jBBgwFoAUWLuc22wRahjM5hTbThZbXVxy3rswDwYDVR0TAQH/BAUwAwEB"
    "/zAaBgNVHREEEzARhwR/AAABgglsb2NhbGhvc3QwCgYIKoZIzj0EAwIDSAAwRQIhAMtHFWmPgv9JqLCW5VwmPESlf4qC6NQzA+If"
    "a9ab100eAiAvK9earUMEv3uTNP2mmmoiIv8AOzovEByQjp4giL2tcQ=="
)
_KEY = (
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgfp1FHkopB6/bCWZt06OQT2vfDlZ6C/kz9pYC7C91XYKhRANCAAQc"
    "9Gsx1tVgIvW9mIC6WJQ2UhNgSPiHw8byNDPFpp3iAZbO8+w6fVoXqnLX2ZWkMTH91jk/kiSmASpBygrnwrR5"
)


def certificate(folder: Path) -> Path:
    """A file with the server's certificate, to be trusted."""
    file = folder / "certificate.pem"
    file.write_text(_pem("CERTIFICATE", _CERTIFICATE))
    return file


@contextmanager
def serve_tls(folder: Path) -> Iterator[str]:
    """The base URL of a server that answers every GET with an empty list of models."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "12")
            self.end_headers()
            self.wfile.write(b'{"data": []}')

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass

    (folder / "key.pem").write_text(_pem("PRIVATE KEY", _KEY))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(folder), folder / "key.pem")
    server = Server(("127.0.0.1", 0), Handler)
    # The handshake belongs to the thread of a connection.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _pem(what: str, body: str) -> str:
    return f"-----BEGIN {what}-----\n" + "\n".join(textwrap.wrap(body, 64)) + f"\n-----END {what}-----\n"
