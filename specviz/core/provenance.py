"""Versions and machine of a measurement, as every trace and every benchmark records them."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from specviz import __version__
from specviz.core.ports import Capabilities

#: Packages that affect results or times, among them the BLAS that MLX uses on Linux.
PACKAGES = (
    "ik-llama-cpp-python", "mlx", "mlx-lm", "scipy-openblas32",
    "numpy", "transformers", "tokenizers", "openai", "msgspec",
)  # fmt: skip


@cache
def versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """The versions of specviz, Python and the packages that are installed, by name."""
    found = {"specviz": __version__, "python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, str]:
    """System, processor and cores."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": str(os.cpu_count() or "n/a"),
    }


def computed_by(target: Capabilities) -> dict[str, str]:
    """What computes a target: engine, number format and matrix library in this process, or what its server says it is.

    Always the same names for a place, so that a name that is missing from a file was not recorded.
    """
    if target.place == "completions":
        return {"server": target.server or "it does not say"}
    return {name: getattr(target, name) or "none" for name in ("engine", "precision", "blas")}


def _processor() -> str:
    """The name of the processor: from /proc/cpuinfo on Linux, from the platform module elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine() or "n/a"
