"""Whether the library can be used on this machine."""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from pathlib import Path

from specviz.engines.llama.library import library
from specviz.engines.llama.self_test import TOLERANCE, wrong

#: What the library is compiled for. Without these the first pass ends the process.
_FLAGS = ("avx2", "fma")


@functools.cache
def problem() -> str:
    """Why the library cannot be used on this machine, as a sentence; empty where it can.

    The processor is looked at first: on one without AVX2 and FMA the library would end the process.
    """
    if missing := _missing_flags():
        return f"The processor lacks {' and '.join(missing)}, for which the GGUF engine is built."
    try:
        library()
        right = wrong() < TOLERANCE
    except Exception as exc:  # no wheel, musl, a missing system library: the package's loader raises several types
        return f"The GGUF engine cannot be loaded: {type(exc).__name__}: {exc}."
    return "" if right else "The GGUF engine computes wrong scores on this machine."


def _missing_flags() -> list[str]:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return []
    if sys.platform == "linux":
        try:
            text = Path("/proc/cpuinfo").read_text(errors="replace")
        except OSError:
            return []
        line = next((line for line in text.splitlines() if line.startswith("flags")), "")
        return [flag.upper() for flag in _FLAGS if flag not in line.split()] if line else []
    if sys.platform == "win32":
        avx2 = 40  # PF_AVX2_INSTRUCTIONS_AVAILABLE; each processor with AVX2 that Windows 10 knows has FMA
        return [] if ctypes.windll.kernel32.IsProcessorFeaturePresent(avx2) else ["AVX2"]
    return []
