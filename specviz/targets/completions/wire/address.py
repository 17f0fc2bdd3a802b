"""Where requests go, and what admits them: the two halves of a base URL that holds user, password and query."""

from __future__ import annotations

import base64
from urllib.parse import SplitResult, unquote, urlsplit

from specviz.core.connection import Connection
from specviz.core.errors import SettingsError


def address_of(connection: Connection) -> SplitResult:
    """The base URL to send to: its query is in it, user and password are not.

    Raises:
        SettingsError: it has characters that no URL has; they are not shown, being part of a secret perhaps.
    """
    whole = connection.url.value.strip()
    if not (whole.isascii() and whole.isprintable()) or " " in whole:
        raise SettingsError("The base URL has characters that no URL can have.", "Write them as %20 and the like.")
    parts = urlsplit(whole)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")


def below(address: SplitResult, path: str) -> str:
    """The whole URL of a path, such as "models"; "/version" is below the server's root, that is, before the /v1."""
    base = address.path.rstrip("/")
    if path.startswith("/"):
        base = base.removesuffix("/v1")
    url: str = address._replace(path=f"{base}/{path.lstrip('/')}").geturl()
    return url


def authorization_of(connection: Connection) -> str:
    """The header; empty for none. What the URL holds goes before the key, since there is one header for both.

    Raises:
        SettingsError: the key has characters that no header has.
    """
    parts = urlsplit(connection.url.value)
    if parts.username is not None or parts.password is not None:
        both = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        return f"Basic {base64.b64encode(both.encode()).decode()}"
    key = connection.key.value
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError("The key has characters that no key can have.", "Copy it again, without spaces or quotes.")
    return f"Bearer {key}" if key else ""
