"""What tests have measured, told after everything else; the tests themselves may have run in other processes."""

from __future__ import annotations

from typing import Any

import pytest

_told: list[tuple[str, str, str]] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect them; the last report of a test has those of all its phases."""
    if report.when == "teardown":
        _told.extend(tuple(found) for name, found in report.user_properties if name == "figure")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The figures that were taken, after everything else."""
    if not _told:
        return
    width = max(len(what) for what, _, _ in _told)
    terminalreporter.section("figures of the page in Chromium")
    for what, value, wanted in _told:
        terminalreporter.write_line(f"{what:{width}}  {value}" + (f"   [wanted {wanted}]" if wanted else ""))
