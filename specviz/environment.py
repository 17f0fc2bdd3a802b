"""Reads the environment and `.env`; the one place that does."""

from __future__ import annotations

import os
from pathlib import Path

from dotenv import dotenv_values


def environment(folder: Path | None = None) -> dict[str, str]:
    """Variables of the process over those of `.env` in `folder` (default: the working folder).

    The process's own environment is left as it is.
    """
    file = (folder or Path.cwd()) / ".env"
    from_file = {k: v for k, v in dotenv_values(file).items() if v is not None} if file.is_file() else {}
    return from_file | dict(os.environ)
