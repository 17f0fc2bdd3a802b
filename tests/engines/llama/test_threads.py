"""The number of threads follows what passes take, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from specviz.engines.llama import threads as module
from specviz.engines.llama.threads import Threads, numbers

#: Seconds of a pass over one token by number of threads: on a quiet machine, and beside a busy process.
QUIET = {4: 0.004, 2: 0.005, 1: 0.009}
BUSY = {4: 0.150, 2: 0.080, 1: 0.014}


class Machine:
    """Passes that take what the number of threads makes them take."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cores: int = 4) -> None:
        monkeypatch.setattr(module, "usable_cores", lambda: cores)
        self.now, self.times = 0.0, QUIET
        self.threads = Threads(clock=lambda: self.now)

    def one_pass(self, tokens: int = 1) -> float:
        seconds = self.times[self.threads.number] * (1 + 0.2 * (tokens - 1))
        self.now += seconds
        self.threads.took(1, tokens, seconds)
        return seconds

    def passes(self, count: int) -> float:
        return sum(self.one_pass(1 + i % 5) for i in range(count))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(monkeypatch)
    made.threads.measure(made.one_pass)
    return made


@pytest.mark.parametrize(("cores", "tried"), [(1, [1]), (2, [2, 1]), (6, [6, 3, 1]), (16, [16, 8, 4, 2, 1])])
def test_the_numbers_that_are_tried(cores: int, tried: list[int]) -> None:
    assert numbers(cores) == tried


def test_the_fastest_number_is_chosen_when_a_model_is_loaded(machine: Machine) -> None:
    assert machine.threads.number == 4


def test_a_machine_whose_second_half_of_cores_does_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    machine.times = {4: 0.006, 2: 0.005, 1: 0.009}
    machine.threads.measure(machine.one_pass)
    assert machine.threads.number == 2


def test_a_quiet_machine_keeps_its_number(machine: Machine) -> None:
    machine.passes(500)
    assert machine.threads.number == 4


def test_beside_a_busy_process_the_best_number_is_found_and_costs_little(machine: Machine) -> None:
    machine.passes(100)
    machine.times = BUSY
    machine.passes(20)
    assert machine.threads.number == 1
    took = machine.passes(2000)
    best = sum(BUSY[1] * (1 + 0.2 * (i % 5)) for i in range(2000))
    assert best / took > 0.95, "trying the other numbers again costs little"


def test_a_few_very_slow_passes_among_fast_ones_are_seen(machine: Machine) -> None:
    """As they come beside a busy process: a worker waits for the other's time slice."""
    machine.passes(100)
    took = 0.0
    for i in range(3000):
        several = 0.080 if i % 4 == 0 else 0.006
        machine.times = {4: several, 2: several, 1: 0.014}
        took += machine.one_pass()
    assert 3000 * 0.014 / took > 0.9


def test_when_the_process_has_ended_all_threads_are_used_again(machine: Machine) -> None:
    machine.passes(100)
    machine.times = BUSY
    machine.passes(1000)
    machine.times = QUIET
    machine.passes(4000)
    assert machine.threads.number == 4


def test_a_longer_context_is_no_busy_machine(machine: Machine) -> None:
    machine.passes(100)
    machine.times = {number: 2 * seconds for number, seconds in QUIET.items()}
    machine.passes(200)
    assert machine.threads.number == 4


def test_a_prefill_is_not_compared_with_single_tokens(machine: Machine) -> None:
    machine.passes(20)
    for _ in range(50):
        machine.threads.took(1, 500, 1.0)
    assert machine.threads.number == 4


def test_a_fixed_number_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = Threads(2)
    ran: list[int] = []
    measured: Callable[[], object] = lambda: ran.append(1)  # noqa: E731
    fixed.measure(measured)
    for _ in range(50):
        fixed.took(1, 1, 1.0 + len(ran))
    assert fixed.number == 2 and not ran
