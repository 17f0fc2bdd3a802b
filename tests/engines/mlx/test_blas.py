from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from specviz.engines.mlx import blas

ROOT = Path(__file__).parents[3]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="preloading is for Linux")


def run(code: str, **environment: str) -> list[str]:
    """Run code in a new interpreter, because a BLAS is loaded once per process: printed lines, then log lines."""
    head = "import logging, sys; logging.basicConfig(level=logging.INFO, format='%(name)s %(levelname)s %(message)s')\n"
    done = subprocess.run(
        [sys.executable, "-c", head + code],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines() + [line for line in done.stderr.splitlines() if line.startswith("specviz")]


CALL = "from specviz.engines.mlx.blas import use_fast_blas; r = use_fast_blas(); print(r.fast, use_fast_blas() is r); "


@linux_only
def test_one_line_of_the_log_names_the_blas() -> None:
    out = run(CALL + "use_fast_blas(); print(r.name)")
    assert out[0].endswith("True")
    assert len(out) == 3 and out[2].startswith("specviz.engines.mlx.blas INFO BLAS for MLX") and out[1] in out[2]


@linux_only
def test_switched_off() -> None:
    assert run(CALL, SPECVIZ_BLAS="none")[0] == "False True"


@linux_only
def test_a_load_after_mlx_is_reported() -> None:
    out = run("import mlx.core\n" + CALL + "print(r.reason)")
    assert out[0] == "False True" and "before" in out[1]


@linux_only
def test_a_library_that_does_not_exist() -> None:
    out = run(CALL + "print(r.reason)", SPECVIZ_BLAS="/no/such/lib.so")
    assert out[0] == "False True" and "/no/such/lib.so" in out[1]


@linux_only
def test_a_library_that_is_no_blas_is_not_loaded() -> None:
    out = run(CALL + "print(r.reason)", SPECVIZ_BLAS="libm.so.6")
    assert out[0] == "False True" and "does not export cblas_sgemm" in out[1]


@linux_only
def test_the_fast_one_is_what_mlx_calls() -> None:
    code = CALL + (
        "import mlx.core as mx; x = mx.ones((512, 512)); mx.eval(x @ x)\n"
        "print(r.path is None or any(r.path.rpartition('/')[2] in line for line in open('/proc/self/maps')))"
    )
    assert run(code)[1] == "True"


def gemm(distort: float) -> Any:
    """A `cblas_sgemm` in Python, off by `distort`."""

    def sgemm(*a: Any) -> None:
        _, _, trans_b, m, n, k, _, a_at, lda, b_at, ldb, _, c_at, ldc = a
        left = np.ctypeslib.as_array(ctypes.cast(a_at, ctypes.POINTER(ctypes.c_float)), (m, lda))
        rows = n if trans_b == 112 else k
        right = np.ctypeslib.as_array(ctypes.cast(b_at, ctypes.POINTER(ctypes.c_float)), (rows, ldb))
        out = np.ctypeslib.as_array(ctypes.cast(c_at, ctypes.POINTER(ctypes.c_float)), (m, ldc))
        out[:] = left @ (right.T if trans_b == 112 else right)
        if m == 9:
            out[-1, -1] += distort

    return SimpleNamespace(cblas_sgemm=sgemm)


def test_a_library_is_used_only_if_it_multiplies_correctly() -> None:
    assert blas._problem(gemm(0.0)) == ""
    assert "wrongly" in blas._problem(gemm(1.0))
    assert "wrongly" in blas._problem(gemm(float("nan")))


def test_without_a_candidate_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(blas, "_candidates", lambda: iter(()))
    monkeypatch.setattr(blas, "_in_global_scope", lambda symbol: False)
    monkeypatch.delenv("SPECVIZ_BLAS", raising=False)
    monkeypatch.delitem(sys.modules, "mlx.core", raising=False)
    report = blas._choose()
    assert not report.fast and "pip install scipy-openblas32" in report.reason


def test_macos_has_accelerate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert blas._choose().fast
