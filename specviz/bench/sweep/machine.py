"""Versions and machine, as they stand in every saved benchmark."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from specviz import __version__

_PACKAGES = ("mlx", "mlx-lm", "numpy", "openai", "scipy-openblas32")


def machine() -> dict[str, str]:
    """What a measurement depends on, in words."""
    found = {
        "specviz": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": str(os.cpu_count() or "n/a"),
    }
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    """Linux says it in a file; elsewhere the platform module does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine() or "n/a"
