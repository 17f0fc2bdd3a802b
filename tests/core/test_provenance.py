"""Traces and benchmarks record versions and machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

from specviz import __version__
from specviz.core import provenance
from specviz.core.provenance import machine, versions
from specviz.core.settings import Settings
from specviz.record.trace import header


def test_versions_are_those_of_what_is_installed() -> None:
    found = versions()
    assert (found["specviz"], found["python"]) == (__version__, platform.python_version())
    assert all(found[name] == version(name) for name in ("numpy", "openai", "msgspec"))
    assert set(found) <= {"specviz", "python", *provenance.PACKAGES}
    assert versions(("numpy", "no-such-package")).keys() == {"specviz", "python", "numpy"}


def test_the_blas_that_decides_about_speed_is_among_them() -> None:
    assert {"mlx", "mlx-lm", "scipy-openblas32"} <= set(provenance.PACKAGES)


def test_a_trace_has_versions_and_machine() -> None:
    head = header(Settings(target="toy"))
    assert head["versions"] == versions()
    assert head["machine"] == machine() | {"cores": os.cpu_count()} and all(machine().values())
