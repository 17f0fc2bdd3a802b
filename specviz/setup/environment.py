"""Reads the environment and `.env`; no other module does."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path

from dotenv import dotenv_values

from specviz.core.connection import Secret
from specviz.core.errors import SettingsError
from specviz.core.kinds import LINES
from specviz.core.reading import Wanted, read_text
from specviz.core.secrets import Secrets
from specviz.core.settings import SECRETS

_FILE = Wanted(
    "a file of settings", SettingsError, "Save it as UTF-8 text, or remove it.", LINES, largest_bytes=1_000_000
)


def environment(folder: Path | None = None) -> dict[str, str]:
    """Variables of the process, then those of `.env` in `folder` (default: the working folder).

    The environment of the process is not changed.

    Raises:
        SettingsError: `.env` exists and cannot be read.
    """
    file = (folder or Path()) / ".env"
    found = dotenv_values(stream=io.StringIO(read_text(file, _FILE))) if file.is_file() else {}
    return {k: v for k, v in found.items() if v is not None} | dict(os.environ)


def secrets(variables: Mapping[str, str], key: Secret | None = None) -> Secrets:
    """Everything that must be removed from output: secret variables, the secret parts of the base URL, and a key."""
    keys = [*(variables.get(name, "").strip() for name in SECRETS), key.value if key else ""]
    return Secrets(keys, [variables.get("TARGET_BASE_URL", "")])
