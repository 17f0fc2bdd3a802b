"""Where requests go, and what admits them: a base URL may hold user, password and query."""

from __future__ import annotations

import base64
from urllib.parse import unquote, urlsplit

from specviz.core.connection import Connection
from specviz.core.errors import SettingsError


def query_of(connection: Connection) -> str:
    """The query of the base URL, which goes with every request; empty for none."""
    return urlsplit(connection.url.value.strip()).query


def below(shown: str, path: str) -> str:
    """The URL of a path, such as "models"; "/version" is below the server's root, which is the base without "/v1".

    Args:
        shown: the base URL without secrets.
    """
    base = shown.removesuffix("/v1") if path.startswith("/") else shown
    return f"{base}/{path.lstrip('/')}"


def authorization_of(connection: Connection) -> str:
    """The header's value; empty for none. User and password of the URL go before the key: there is one header for both.

    Raises:
        SettingsError: the key has a character that no header can have.
    """
    parts = urlsplit(connection.url.value)
    if parts.username is not None or parts.password is not None:
        both = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        return f"Basic {base64.b64encode(both.encode()).decode()}"
    key = connection.key.value
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError("The key has characters that no key can have.", "Copy it again, without spaces or quotes.")
    return f"Bearer {key}" if key else ""
