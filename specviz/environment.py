"""Reads the environment and `.env`; the one place that does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dotenv import dotenv_values

from specviz.errors import SettingsError
from specviz.settings import SECRETS

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


def secrets(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Values of secret variables, to be struck out of what is written; a short one would strike out ordinary text."""
    return tuple(v for name in SECRETS if len(v := variables.get(name, "")) >= _SHORTEST_SECRET)
