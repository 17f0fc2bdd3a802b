"""Reads the environment and `.env`; the one place that does."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from dotenv import dotenv_values

from specviz.core.connection import Secret
from specviz.core.errors import SettingsError
from specviz.core.settings import SECRETS, without_secrets

_SHORTEST_SECRET = 8


def environment(folder: Path | None = None) -> dict[str, str]:
    """Variables of the process over those of `.env` in `folder` (default: the working folder).

    The process's own environment is left as it is.

    Raises:
        SettingsError: there is a `.env`, but it cannot be read.
    """
    file = (folder or Path.cwd()) / ".env"
    try:
        found = dotenv_values(file) if file.is_file() else {}
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"{file.name} cannot be read: {exc}.", "Save it as UTF-8 text, or remove it.") from exc
    return {k: v for k, v in found.items() if v is not None} | dict(os.environ)


def secrets(variables: Mapping[str, str], key: Secret | None = None) -> tuple[str, ...]:
    """What must be struck out of whatever is written: secret variables, what a base URL hides, and a key.

    A short one is left out: it would strike out ordinary text.
    """
    url = variables.get("TARGET_BASE_URL", "").strip()
    found = [*(variables.get(name, "").strip() for name in SECRETS), *_hidden_in(url), key.value if key else ""]
    return tuple(dict.fromkeys(s for s in found if len(s) >= _SHORTEST_SECRET))


def _hidden_in(url: str) -> list[str]:
    """The whole URL where there is more to it than an address, and the parts that an address has not."""
    try:
        parts = urlsplit(url)
        if without_secrets(url) == url.rstrip("/"):
            return []
    except (ValueError, SettingsError):
        return [url]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    basic = base64.b64encode(f"{user}:{password}".encode()).decode() if user or password else ""
    values = [value for _, value in parse_qsl(parts.query)]
    return [url, basic, password, parts.password or "", parts.query, *values]
