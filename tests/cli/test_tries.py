"""A sample of `python -m tests.benchmarks.tries`, which runs hundreds."""

from __future__ import annotations

from tests.benchmarks.tries import tries


def test_no_try_of_the_command_line_goes_wrong() -> None:
    wrong = {" + ".join(p.name for p in o.parts): (o.faults, o.errors) for o in tries(10, seed=13) if o.faults}
    assert not wrong
