"""An optimised BLAS for MLX on a CPU, loaded before MLX loads its own.

MLX's Linux wheel links the reference BLAS. The dynamic linker keeps the first definition of a name, so a library that
exports the same names (`cblas_sgemm`, 32-bit integers) replaces it when `dlopen` loads the library into the global
scope of the process before `mlx.core` is imported.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

logger = logging.getLogger(__name__)

SWITCH = "SPECVIZ_BLAS"
_CUDA_WHEELS = ("mlx-cuda", "mlx-cuda-12", "mlx-cuda-13")


@dataclass(frozen=True, slots=True)
class BlasReport:
    """Which BLAS multiplies MLX's matrices in this process.

    Attributes:
        name: as it is shown, such as "OpenBLAS".
        path: the library that was loaded; None where no library was loaded.
        reason: why this one.
        fast: whether it is an optimised one. True on macOS, where MLX uses Accelerate.
    """

    name: str
    path: str | None
    reason: str
    fast: bool


_lock = threading.Lock()
_report: BlasReport | None = None


def use_fast_blas() -> BlasReport:
    """Load the first usable BLAS, once per process, and write its name to the log.

    In order: the `SPECVIZ_BLAS` environment variable (a path, or `none` to load nothing), Intel's MKL where it is
    installed (1.5 times as fast in plain decoding, but not required because it has 221 MB), the system's OpenBLAS, the
    OpenBLAS of the `scipy-openblas32` wheel. A library is used only if it multiplies correctly: old builds can be wrong
    on new processors.

    Returns:
        The BLAS in use; later calls return the same value.
    """
    global _report
    with _lock:
        if _report is None:
            _report = _choose()
            logger.info("BLAS for MLX on the CPU: %s. %s", _report.name, _report.reason)
        return _report


def _choose() -> BlasReport:
    if sys.platform == "darwin":
        return BlasReport("Accelerate", None, "It is part of macOS.", True)
    slow = "MLX's own reference BLAS"
    if sys.platform != "linux":
        return BlasReport(slow, None, f"Nothing is preloaded on {sys.platform}.", False)
    wish = os.environ.get(SWITCH, "").strip()
    if wish.lower() == "none":
        return BlasReport(slow, None, f"{SWITCH}=none switches the fast BLAS off.", False)
    if any(_installed(wheel) for wheel in _CUDA_WHEELS):
        return BlasReport(slow, None, "MLX computes on the GPU.", False)
    if _in_global_scope("openblas_get_config"):
        return BlasReport("OpenBLAS", None, "It was loaded in this process before.", True)
    if "mlx.core" in sys.modules:
        return BlasReport(slow, None, "mlx.core was imported before a fast BLAS could be loaded.", False)
    refused = []
    for name, path in [("The library of " + SWITCH, wish)] if wish else _candidates():
        try:
            library = ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)
        except OSError as exc:
            if wish:
                refused.append(f"{path} cannot be loaded: {exc}.")
            continue
        if problem := _problem(library):
            refused.append(f"{path} {problem}.")
            continue
        # The same library again, into the scope in which the linker looks up MLX's symbols.
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        return BlasReport(name, path, " ".join(["Its results agree with numpy's.", *refused]), True)
    advice = "`pip install scipy-openblas32==0.3.23.293.2` makes MLX about ten times as fast."
    return BlasReport(slow, None, " ".join([*refused, advice]), False)


def _candidates() -> Iterator[tuple[str, str]]:
    for path in sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*")):
        # MKL reads this when it is loaded: 32-bit integers, as MLX passes them.
        os.environ.setdefault("MKL_INTERFACE_LAYER", "LP64")
        yield "MKL", str(path)
    yield "OpenBLAS of the system", "libopenblas.so.0"
    spec = importlib.util.find_spec("scipy_openblas32")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        # Later versions of this wheel prefix every symbol, so they cannot replace the reference BLAS.
        yield "OpenBLAS of the scipy-openblas32 wheel", str(Path(root) / "lib" / "libopenblas_python.so")


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _in_global_scope(symbol: str) -> bool:
    return hasattr(ctypes.CDLL(None), symbol)


_ROW_MAJOR, _NO_TRANS, _TRANS = 101, 111, 112
_SHAPES = [(m, n, k) for m in (1, 5, 9, 37) for n, k in ((1536, 576), (576, 1536))]


def _problem(library: Any) -> str:
    """Why the `cblas_sgemm` of a library cannot be used; empty where it can."""
    try:
        sgemm = library.cblas_sgemm
    except AttributeError:
        return "does not export cblas_sgemm"
    sgemm.restype = None
    integer, real, pointer = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
    sgemm.argtypes = [integer] * 6 + [real, pointer, integer, pointer, integer, real, pointer, integer]
    rng = np.random.default_rng(0)
    for m, n, k in _SHAPES:
        a = rng.standard_normal((m, k), dtype=np.float32)
        for trans_b in (_NO_TRANS, _TRANS):
            b = rng.standard_normal((k, n) if trans_b == _NO_TRANS else (n, k), dtype=np.float32)
            c = np.full((m, n), np.nan, dtype=np.float32)
            sgemm(
                _ROW_MAJOR, _NO_TRANS, trans_b, m, n, k,
                1.0, a.ctypes.data, k, b.ctypes.data, b.shape[1], 0.0, c.ctypes.data, n,
            )  # fmt: skip
            right = a @ (b if trans_b == _NO_TRANS else b.T)
            # Sums of k products of unit normals are about √k; float32 rounding stays far below this.
            if not np.allclose(c, right, rtol=1e-3, atol=1e-3 * np.sqrt(k)):
                return f"multiplies {m}×{k} by {k}×{n} wrongly on this processor"
    return ""
