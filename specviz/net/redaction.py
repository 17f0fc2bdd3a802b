"""Foreign texts made fit to be shown: the messages of servers, and the logs of the HTTP libraries."""

from __future__ import annotations

import html
import json
import logging
import re
import unicodedata

from specviz.core.secrets import Secrets

#: Longest text of a server that a message holds, in characters.
CUT = 300

#: The loggers of the libraries that talk to a server. A filter acts on its own logger only, not on those below it.
LOGGERS = (
    "openai",
    "openai._base_client",
    "openai._legacy_response",
    "openai._response",
    "httpx2",
    *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
)


def words(text: str, secrets: Secrets) -> str:
    """A foreign text for a message: no secrets, no control characters, no line breaks, at most `CUT` characters."""
    # Struck out before and after, since an invisible character inside a secret would have hidden it.
    text = " ".join(secrets.strike(text).split())
    text = secrets.strike("".join(c for c in text if not unicodedata.category(c).startswith("C")))
    return text if len(text) <= CUT else text[: CUT - 1] + "…"


class LogRedactor(logging.Filter):
    """Strikes secrets out of log records: httpx2 logs whole URLs (INFO), httpcore2 the headers of answers (DEBUG)."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True; a record that holds a secret is changed in place."""
        text = record.getMessage()
        struck = self._secrets.strike(text)
        if struck != text:
            record.msg, record.args = struck, ()
        return True

    def hang(self) -> None:
        """Add the filter to every logger of the libraries."""
        for name in LOGGERS:
            logging.getLogger(name).addFilter(self)

    def remove(self) -> None:
        """Take it off again."""
        for name in LOGGERS:
            logging.getLogger(name).removeFilter(self)


def message_in(data: bytes, secrets: Secrets) -> str:
    """The message in the body of an error, whatever its shape; empty where there is none."""
    text = data.decode("utf-8", errors="replace")
    try:
        return words(_message(json.loads(text)), secrets)
    except (ValueError, RecursionError):
        return words(_plain(text), secrets)


def message_of(value: object, secrets: Secrets) -> str:
    """The same for JSON that was parsed already."""
    return words(_message(value), secrets)


def _message(value: object) -> str:
    """The message in one of the shapes that servers use.

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
