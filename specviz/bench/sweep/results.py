"""What a sweep has measured, run by run, and the file that keeps it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.plan import SweepPlan
from specviz.core.errors import SettingsError, SpecvizError
from specviz.core.events import TimeSplit
from specviz.core.files import disk_errors, write_whole
from specviz.core.kinds import BENCHMARK, JSON, PREDICTION, START_BYTES, kind_of
from specviz.core.reading import Wanted, json_of, read_bytes, text_of
from specviz.record.claim import claimed

SCHEMA = "specviz.bench/1"
#: Stands for what an older file does not say.
NOT_RECORDED = "not recorded"
_ELSEWHERE = "Choose another place."
#: What the plan of every saved benchmark has.
_PLAN_FIELDS = frozenset("settings drafts ks temperatures rules baselines suite repeats warm_up min_confidence".split())

Count = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class Trial:
    """One cell on one prompt, once.

    Attributes:
        cell, prompt: indices into the plan's cells and the prompts. repeat: from 0.
        tokens: of the output. rounds, drafted, tested, accepted: 0 for a baseline that was streamed.
        steady_tokens, steady_ms: without the first round, which has the prefill; of a stream after its first piece.
        proposed, reached, kept: per position of the block, how many drafts had a token there, that was tested, kept.
        split: where the time went, without the first round, in ms.
        billed_prompt, billed_completion, requests: what a server counted; None where it did not.
        finish: why the output ended. guarantee: what may be promised about it.
        order: rank in the order of measuring.
        text_hash: of the output's token ids, to tell whether two outputs are the same.
    """

    cell: Count
    prompt: Count
    repeat: Count
    tokens: Count
    rounds: Count
    drafted: Count
    tested: Count
    accepted: Count
    steady_tokens: Count
    steady_ms: Annotated[float, msgspec.Meta(ge=0)]
    proposed: tuple[Count, ...] = ()
    reached: tuple[Count, ...] = ()
    kept: tuple[Count, ...] = ()
    split: TimeSplit = field(default_factory=TimeSplit)
    billed_prompt: Count | None = None
    billed_completion: Count | None = None
    requests: Count | None = None
    finish: str = ""
    guarantee: str = ""
    order: Count = 0
    text_hash: str = ""

    @property
    def key(self) -> tuple[int, int, int]:
        """What identifies it within its benchmark."""
        return self.cell, self.prompt, self.repeat

    @property
    def tokens_per_second(self) -> float | None:
        """None where nothing was decoded after the first round."""
        return 1000 * self.steady_tokens / self.steady_ms if self.steady_tokens and self.steady_ms > 0 else None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a cell could not be measured, or not completely."""

    cell: Count
    message: str
    remedy: str = ""


@dataclass(slots=True)
class Bench:
    """A sweep: its plan, and what was measured of it.

    Attributes:
        prompts: those of the suite, in order.
        machine: versions, machine, and what computes the target: see `specviz.core.provenance`.
        started_at: seconds since the epoch. seconds: spent measuring, pauses left out.
        left_out: why a prompt cannot be decoded, by the prompt's index.
        answers: the target's answers to the turns before a prompt, by the prompt's index.
    """

    plan: SweepPlan
    prompts: tuple[BenchPrompt, ...]
    trials: list[Trial] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    machine: dict[str, str] = field(default_factory=dict)
    started_at: float = 0.0
    seconds: float = 0.0
    left_out: dict[int, str] = field(default_factory=dict)
    answers: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Runs in the plan, without the prompts that were left out."""
        return len(self.plan.cells()) * self._prompts_left * self.plan.repeats

    @property
    def missing(self) -> int:
        """Runs that are still to be measured; those of cells that failed will not be."""
        failed = {f.cell for f in self.failures}
        done = {t.key for t in self.trials if t.cell not in failed}
        return (len(self.plan.cells()) - len(failed)) * self._prompts_left * self.plan.repeats - len(done)

    @property
    def _prompts_left(self) -> int:
        return len(self.prompts) - len(self.left_out)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict; `specviz.bench.sweep.rows` computes everything else from it."""
        data = json_ready(self)
        trials = data.pop("trials")
        return {
            "schema": SCHEMA,
            "plan": data.pop("plan"),
            "cells": json_ready(self.plan.cells()),
            **data,
            "trials": trials,
        }

    @classmethod
    def from_json(cls, data: Any) -> Bench:
        """Read what `to_json` gave.

        Raises:
            SettingsError: it is something else, or damaged.
        """
        if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
            raise SettingsError(
                "This is not a saved benchmark.", f'A benchmark is a JSON object with "schema": "{SCHEMA}".'
            )
        try:
            found = msgspec.convert(data, cls, str_keys=True)
            if missing := _PLAN_FIELDS - set(data["plan"]):
                raise ValueError(f"the plan has no {min(missing)}")
            found._check()
        except SpecvizError as exc:
            raise SettingsError(f"The saved benchmark is damaged: {exc.message}", "Measure it again.") from exc
        except (msgspec.ValidationError, TypeError, ValueError) as exc:
            raise SettingsError(f"The saved benchmark is damaged: {exc}.", "Measure it again.") from exc
        return found

    def _check(self) -> None:
        cells, prompts = len(self.plan.cells()), len(self.prompts)
        for trial in self.trials:
            if not (0 <= trial.cell < cells and 0 <= trial.prompt < prompts and 0 <= trial.repeat < self.plan.repeats):
                raise ValueError(f"trial {trial.key} is not in the plan")
        if any(not 0 <= f.cell < cells for f in self.failures):
            raise ValueError("a failure of a cell that is not in the plan")
        if any(not 0 <= i < prompts for i in self.left_out):
            raise ValueError("a prompt was left out that is not in the suite")
        if any(not 0 <= i < prompts or len(a) != len(self.prompts[i].before) for i, a in self.answers.items()):
            raise ValueError("there are answers to turns that no prompt has")
        if len({t.key for t in self.trials}) < len(self.trials):
            raise ValueError("a trial is there twice")


def json_ready(value: Any) -> Any:
    """A value as JSON-ready data; numbers of numpy become those of Python."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=lambda number: number.item())


#: A run takes about 500 bytes.
_WANTED = Wanted(
    "a saved benchmark",
    SettingsError,
    "Give the JSON file of a benchmark.",
    (BENCHMARK, PREDICTION, JSON),
    largest_bytes=512_000_000,
)


def read(path: Path) -> Bench:
    """A saved benchmark.

    Raises:
        SettingsError: it cannot be read, or is something else.
    """
    return loads(read_bytes(path, _WANTED), str(path))


def loads(data: bytes, name: str = "The file") -> Bench:
    """A saved benchmark from the bytes of the file of this name.

    Raises:
        SettingsError: they are something else.
    """
    saved = parsed(data, name)
    if (kind := kind_of(data[:START_BYTES])) == PREDICTION:
        raise _WANTED.refusal(name, kind)
    return Bench.from_json(saved)


def parsed(data: bytes, name: str = "The file") -> Any:
    """What the file of a benchmark or of a prediction holds.

    Raises:
        SettingsError: it is not JSON.
    """
    try:
        return json_of(text_of(data, name, _WANTED))
    except ValueError as exc:
        raise SettingsError(f"{name} is damaged: {exc}.", _WANTED.remedy) from exc


def dumps(bench: Bench, more: Mapping[str, Any] | None = None) -> str:
    """The text of the file; a line per trial, so that two files can be compared. `more`: what is computed from it."""
    data = {**bench.to_json(), **(more or {})}
    lines = []
    for name, value in data.items():
        if isinstance(value, list):
            rows = ",\n".join("    " + json.dumps(row, ensure_ascii=False, allow_nan=False) for row in value)
            lines.append(f"  {json.dumps(name)}: [\n{rows}\n  ]" if value else f"  {json.dumps(name)}: []")
        else:
            lines.append(f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(data: str | bytes, path: Path) -> None:
    """Write a file in one step, see `write_whole`.

    Raises:
        SettingsError: it cannot be written.
    """
    with disk_errors(path, SettingsError, _ELSEWHERE):
        write_whole(path, data)


@contextmanager
def only_writer(by: str, *paths: Path | None) -> Iterator[None]:
    """Keep others from writing these files, see `claimed`. None: a file that is not wanted.

    Raises:
        SettingsError: one cannot be written.
        RunError: somebody else writes one.
    """
    with ExitStack() as stack:
        for path in paths:
            if path is not None:
                with disk_errors(path, SettingsError, _ELSEWHERE):
                    stack.enter_context(claimed(path, by))
        yield
