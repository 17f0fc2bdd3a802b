"""What a sweep has measured, run by run, and the file that keeps it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.plan import SweepPlan
from specviz.core.errors import SettingsError, SpecvizError
from specviz.core.events import TimeSplit
from specviz.core.files import disk_errors, write_whole
from specviz.core.settings import Settings

SCHEMA = "specviz.bench/1"


@dataclass(frozen=True, slots=True)
class Trial:
    """One cell on one prompt, once.

    Attributes:
        cell, prompt: indices into the plan's cells and the prompts. repeat: from 0.
        tokens: of the output. rounds, drafted, tested, accepted: 0 for a baseline that was streamed.
        steady_tokens, steady_ms: without the first round, which holds the prefill; of a stream behind its first piece.
        proposed, reached, kept: per position of the block: drafts that had a token there, that were tested there, kept.
        split: where the time went, the first round left out, in ms.
        billed_prompt, billed_completion, requests: what a server counted; None where it did not.
        finish: why the output ended. guarantee: what may be promised about it.
        order: rank in the order of measuring.
        text_hash: of the output's token ids, to tell whether two outputs are the same.
    """

    cell: int
    prompt: int
    repeat: int
    tokens: int
    rounds: int
    drafted: int
    tested: int
    accepted: int
    steady_tokens: int
    steady_ms: float
    proposed: tuple[int, ...] = ()
    reached: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    split: TimeSplit = field(default_factory=TimeSplit)
    billed_prompt: int | None = None
    billed_completion: int | None = None
    requests: int | None = None
    finish: str = ""
    guarantee: str = ""
    order: int = 0
    text_hash: str = ""

    @property
    def key(self) -> tuple[int, int, int]:
        """What makes it one of its kind."""
        return self.cell, self.prompt, self.repeat

    @property
    def tokens_per_second(self) -> float | None:
        """None where nothing was decoded behind the first round."""
        return 1000 * self.steady_tokens / self.steady_ms if self.steady_tokens and self.steady_ms > 0 else None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a cell could not be measured, or not to its end."""

    cell: int
    message: str
    remedy: str = ""


@dataclass(slots=True)
class Bench:
    """A sweep: what was to be measured, and what was.

    Attributes:
        prompts: the suite's, as they were asked.
        machine: versions and machine, see `specviz.bench.sweep.machine`.
        started_at: seconds since the epoch. seconds: spent measuring, pauses left out.
        left_out: prompts that cannot be decoded from, by index, and why.
        answers: what the target said to the turns before a prompt, by the prompt's index.
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
        return len(self.plan.cells()) * self._asked * self.plan.repeats

    @property
    def missing(self) -> int:
        """Runs that are still to be measured: those of cells that failed will not be."""
        failed = {f.cell for f in self.failures}
        done = {t.key for t in self.trials if t.cell not in failed}
        return (len(self.plan.cells()) - len(failed)) * self._asked * self.plan.repeats - len(done)

    @property
    def _asked(self) -> int:
        return len(self.prompts) - len(self.left_out)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict; `specviz.bench.sweep.rows` computes everything else from it."""
        return {
            "schema": SCHEMA,
            "plan": self.plan.to_json(),
            "cells": [asdict(cell) for cell in self.plan.cells()],
            "prompts": [asdict(prompt) for prompt in self.prompts],
            "machine": self.machine,
            "started_at": self.started_at,
            "seconds": self.seconds,
            "left_out": {str(i): why for i, why in self.left_out.items()},
            "answers": {str(i): list(said) for i, said in self.answers.items()},
            "failures": [asdict(f) for f in self.failures],
            "trials": [asdict(t) for t in self.trials],
        }

    @classmethod
    def from_json(cls, data: Any) -> Bench:
        """Read what `to_json` gave.

        Raises:
            SettingsError: it is something else, or damaged.
        """
        if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
            raise SettingsError(
                "This is no saved benchmark.", f'A benchmark is a JSON object with "schema": "{SCHEMA}".'
            )
        try:
            plan = _plan(data["plan"])
            prompts = tuple(_prompt(p) for p in data["prompts"])
            found = cls(
                plan,
                prompts,
                [_trial(t) for t in data["trials"]],
                [Failure(int(f["cell"]), str(f["message"]), str(f.get("remedy", ""))) for f in data["failures"]],
                {str(k): str(v) for k, v in data["machine"].items()},
                float(data["started_at"]),
                float(data["seconds"]),
                {int(i): str(why) for i, why in data["left_out"].items()},
                {int(i): _texts(said) for i, said in data.get("answers", {}).items()},
            )
            found._check()
        except SpecvizError as exc:
            raise SettingsError(f"The saved benchmark is damaged: {exc.message}", "Measure it again.") from exc
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as exc:
            raise SettingsError(f"The saved benchmark is damaged: {exc!r}.", "Measure it again.") from exc
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
            raise ValueError("answers to turns that nobody has asked")
        if len({t.key for t in self.trials}) < len(self.trials):
            raise ValueError("a trial stands there twice")


def read(path: Path) -> Bench:
    """A saved benchmark.

    Raises:
        SettingsError: it cannot be read, or is none.
    """
    try:
        return loads(path.read_bytes())
    except OSError as exc:
        raise SettingsError(
            f"Cannot read {path}: {exc.strerror or exc}.", "Give the JSON file of a benchmark."
        ) from exc


def loads(data: bytes) -> Bench:
    """A saved benchmark from the bytes of its file.

    Raises:
        SettingsError: they are none.
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise SettingsError(f"This is no JSON: {exc}.", "Give the JSON file of a benchmark.") from exc
    return Bench.from_json(found)


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
    with disk_errors(path, SettingsError, "Choose another place."):
        write_whole(path, data)


def _plan(data: Mapping[str, Any]) -> SweepPlan:
    settings = {f.name: data["settings"][f.name] for f in fields(Settings) if f.name in data["settings"]}
    return SweepPlan(
        Settings(**settings | {"stop": tuple(settings.get("stop", ()))}),
        drafts=tuple(data["drafts"]),
        ks=tuple(data["ks"]),
        temperatures=tuple(data["temperatures"]),
        rules=tuple(data["rules"]),
        baselines=tuple(data["baselines"]),
        suite=str(data["suite"]),
        repeats=_count(data["repeats"]),
        warm_up=_count(data["warm_up"]),
        min_confidence=_time(data["min_confidence"]),
    )


def _prompt(data: Mapping[str, Any]) -> BenchPrompt:
    found = {f.name: data[f.name] for f in fields(BenchPrompt) if f.name in data}
    before = _texts(found.pop("before", ()))
    _texts(tuple(found.values()))
    return BenchPrompt(**found, before=before)


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(v, str) for v in values):
        raise TypeError(f"{values!r} are no texts")
    return tuple(values)


_COUNTS = ("cell", "prompt", "repeat", "tokens", "rounds", "drafted", "tested", "accepted", "steady_tokens", "order")
_MAYBE = ("billed_prompt", "billed_completion", "requests")


def _trial(data: Mapping[str, Any]) -> Trial:
    for name in _COUNTS:
        _count(data[name])
    for name in _MAYBE:
        if data[name] is not None:
            _count(data[name])
    positions = {name: tuple(map(_count, data[name])) for name in ("proposed", "reached", "kept")}
    split = TimeSplit(**{name: _time(ms) for name, ms in data["split"].items()})
    own = {f.name: data[f.name] for f in fields(Trial)}
    ms = _time(data["steady_ms"])
    if ms is None:
        raise TypeError("steady_ms is not known")
    return Trial(**own | positions | {"split": split, "steady_ms": ms})


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"{value!r} is no count")
    return value


def _time(value: Any) -> Any:
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value)
    ):
        raise TypeError(f"{value!r} is no time")
    return value
