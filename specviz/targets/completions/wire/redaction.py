"""Keeps secrets out of words: of what a server says, and of what the libraries below write to their logs."""

from __future__ import annotations

import base64
import html
import json
import logging
import re
import unicodedata
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from specviz.core.connection import Connection

DOTS = "•••"
#: Longest text of a server's that a message holds, in characters.
CUT = 300
#: Shorter parts of a URL are no secrets, and striking them would tear words apart.
_SHORTEST_PART = 3

#: Who logs on the way to a server. A filter acts on the one logger that it hangs on, never on those below.
LOGGERS = (
    "openai",
    "openai._base_client",
    "openai._legacy_response",
    "openai._response",
    "httpx2",
    *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
)


class Redactor:
    """Strikes the secrets of a connection out of any text: the key, and whatever its URL holds beside the address."""

    def __init__(self, connection: Connection) -> None:
        self._secrets = _forms(connection)

    def strike(self, text: str) -> str:
        """The text with dots in place of each secret."""
        for secret in self._secrets:
            text = text.replace(secret, DOTS)
        return text

    def words(self, text: str) -> str:
        """A foreign text for a message: no control characters, no line breaks, no secrets, not long."""
        # Secrets go as they are, and then again: an invisible character inside one would have hidden it.
        text = " ".join(self.strike(text).split())
        text = self.strike("".join(c for c in text if not unicodedata.category(c).startswith("C")))
        return text if len(text) <= CUT else text[: CUT - 1] + "…"


class LogRedactor(logging.Filter):
    """Rewrites records: at level INFO httpx2 logs whole URLs, at DEBUG httpcore2 logs the headers of answers."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True; a record that holds a secret is changed in place."""
        said = record.getMessage()
        struck = self._redactor.strike(said)
        if struck != said:
            record.msg, record.args = struck, ()
        return True

    def hang(self) -> None:
        """Onto every logger on the way."""
        for name in LOGGERS:
            logging.getLogger(name).addFilter(self)

    def remove(self) -> None:
        """From all of them."""
        for name in LOGGERS:
            logging.getLogger(name).removeFilter(self)


def said(data: bytes, redactor: Redactor) -> str:
    """What an error's body says, whatever its shape; empty where it says nothing."""
    text = data.decode("utf-8", errors="replace")
    try:
        return redactor.words(_message(json.loads(text)))
    except (ValueError, RecursionError):
        return redactor.words(_plain(text))


def message_of(value: object, redactor: Redactor) -> str:
    """The same for JSON that was read already."""
    return redactor.words(_message(value))


def _message(value: object) -> str:
    """The words in the shapes that servers use.

    `{"error": {"message": …}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": "…"}`, and FastAPI's
    `{"detail": [{"loc": […], "msg": …}]}`.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(filter(None, (_message(v) for v in value[:5])))
    if not isinstance(value, dict):
        return ""
    for name in ("error", "message", "detail", "msg", "error_message", "errors"):
        inner = _message(value.get(name))
        if inner:
            where = value.get("loc") if name == "msg" else None
            return f"{'.'.join(map(str, where))}: {inner}" if isinstance(where, list) else inner
    return ""


def _plain(text: str) -> str:
    """A page's title, else its text without tags."""
    title = re.search(r"<title[^>]*>([^<]*)</title>", text, re.IGNORECASE)
    if title and title[1].strip():
        return html.unescape(title[1])
    text = re.sub(r"<(script|style)\b[^<]*(?:<(?!/\1)[^<]*)*</\1\s*>", " ", text, flags=re.IGNORECASE)
    return html.unescape(re.sub(r"<[^<>]*>", " ", text))


def _forms(connection: Connection) -> tuple[str, ...]:
    """Every secret in every way in which it may be written, the longest first."""
    found = set(connection.secrets)
    parts = urlsplit(connection.url.value)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    pieces = [parts.username or "", parts.password or "", user, password, parts.query, parts.fragment]
    pieces += [value for _, value in parse_qsl(parts.query)]
    if user or password:
        found.add(base64.b64encode(f"{user}:{password}".encode()).decode())
    found |= {p for p in pieces if len(p) >= _SHORTEST_PART}
    for secret in tuple(found):
        found |= {quote(secret, safe=""), quote_plus(secret), html.escape(secret), json.dumps(secret)[1:-1]}
        found.add(json.dumps(secret, ensure_ascii=False)[1:-1])
    return tuple(sorted(found, key=len, reverse=True))
