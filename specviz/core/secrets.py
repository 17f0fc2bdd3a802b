"""Removes secrets from text that is written or shown.

A server may repeat a key in an error message, and a library may write it to its log. All such text passes through
`Secrets` before specviz writes or shows it.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from specviz.core.address import without_secrets
from specviz.core.errors import SettingsError

#: Replaces a secret.
MARK = "[secret]"
#: Shorter texts are not treated as secrets: "EMPTY" and "dummy" are common keys of local servers, and removing a short
#: word would damage ordinary text.
SHORTEST = 6

#: A JSON string; followed by a colon if it is the name of a field.
_JSON_STRING = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?')


class Secrets:
    """Replaces secrets in any text, in every quoted form in which they may appear.

    Args:
        texts: keys and passwords.
        urls: base URLs; everything in them other than the address is secret (user, password, query, fragment).
    """

    __slots__ = ("_forms", "_json_forms")

    def __init__(self, texts: Iterable[str] = (), urls: Iterable[str] = ()) -> None:
        found = {*texts, *(part for url in urls for part in _hidden_in(url.strip()))}
        forms = {form for text in found if len(text) >= SHORTEST for form in _quoted(text)}
        # The longest first: one secret may contain another.
        self._forms = tuple(sorted(forms, key=len, reverse=True))
        self._json_forms = tuple({escaped for form in self._forms for escaped in _in_json(form)})

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __repr__(self) -> str:
        return f"Secrets({MARK})" if self else "Secrets()"

    def __reduce__(self) -> str:
        raise TypeError("secrets are never stored")

    def strike(self, text: str) -> str:
        """The text with `MARK` in place of each secret."""
        for form in self._forms:
            text = text.replace(form, MARK)
        return text

    def strike_in(self, value: Any) -> Any:
        """The same value with `MARK` in place of each secret in the texts of its fields, tuples and dicts."""
        if isinstance(value, str):
            return self.strike(value)
        if isinstance(value, tuple):
            return tuple(map(self.strike_in, value))
        if isinstance(value, dict):
            return {name: self.strike_in(one) for name, one in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{f.name: self.strike_in(getattr(value, f.name)) for f in fields(value) if f.init})
        return value

    def strike_json(self, text: str) -> str:
        """A JSON text with `MARK` in place of each secret in its strings; field names and numbers stay."""
        # Most texts contain no secret, and this is called for every event.
        if not any(form in text for form in self._json_forms):
            return text
        return _JSON_STRING.sub(self._strike_value, text)

    def _strike_value(self, found: re.Match[str]) -> str:
        string, colon = found.groups()
        return found[0] if colon else json.dumps(self.strike(json.loads(string)), ensure_ascii=False)


#: Strikes nothing out.
NO_SECRETS = Secrets()


def _hidden_in(url: str) -> list[str]:
    """The full URL and its secret parts, if it contains more than an address; else an empty list."""
    if not url:
        return []
    try:
        parts = urlsplit(url)
        if without_secrets(url) == url.rstrip("/"):
            return []
    except (ValueError, SettingsError):
        return [url]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    found = [url, user, password, parts.username or "", parts.password or "", parts.query, parts.fragment]
    if user or password:
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        found += [basic, basic.rstrip("=")]
    return found + [value for _, value in parse_qsl(parts.query)]


def _quoted(text: str) -> tuple[str, ...]:
    """The text as it is, and as it is quoted in a URL, in HTML and in JSON."""
    return (text, quote(text, safe=""), quote_plus(text), html.escape(text), *_in_json(text))


def _in_json(text: str) -> tuple[str, str]:
    """The text as it is escaped inside a JSON string, with and without non-ASCII characters."""
    return json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
