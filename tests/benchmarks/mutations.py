"""Damaged GGUF files, each in a process of its own: `python -m tests.benchmarks.mutations --count 300 --seed 0`.

A file must load and decode, or end in an error that says what is wrong and what to do. All else is a fault: a signal,
an abort, a traceback, an error without a remedy, more than 20 seconds of a processor. Prints one JSON object; its
`faults` are empty where all is well. `--only N` writes the file of one number and says what happens to it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specviz.core.decoding import autoregressive
from specviz.core.errors import SpecvizError
from specviz.core.ports import Model
from specviz.core.settings import Settings
from specviz.targets.local import LocalTarget
from tests.engines.mutations import Mutator
from tests.engines.raw_gguf import RawGguf, pieces_of
from tests.engines.sound_gguf import write_sound_gguf

LIMIT_S = 20
#: Where a process waits, or the machine is busy.
_WALL_S = 180
TOKENS = 8
#: What is damaged, in turn.
SOUND: tuple[dict[str, Any], ...] = (
    {},
    {"architecture": "qwen2"},
    {"architecture": "qwen3"},
    {"experts": 4},
    {"pieces": "llama"},
)
_HANGS = "hangs"
_DECODES, _REFUSED, _REFUSED_IN_TRIAL, _FAULT = 0, 1, 2, 3
_NAMES = {_DECODES: "decode", _REFUSED: "refused", _REFUSED_IN_TRIAL: "refused after the trial ended"}


@dataclass(frozen=True)
class Outcome:
    """What happened to one file.

    Attributes:
        number: of the mutation.
        damage: in words.
        result: a name of `_NAMES`, or what the fault was.
        said: the error, or the last of what the process wrote.
    """

    number: int
    damage: str
    result: str
    said: str

    @property
    def is_fault(self) -> bool:
        return self.result not in _NAMES.values()


class Mutations:
    """Mutations of sound files; a seed and a number give the same file each time."""

    def __init__(self, folder: Path, seed: int, engine: str) -> None:
        self.folder, self.seed, self.engine = folder, seed, engine
        self._sound: dict[int, RawGguf] = {}

    def write(self, number: int) -> tuple[str, Path]:
        """The damage in words, and the damaged file."""
        which = number % len(SOUND) if self.engine == "llama" else 0  # MLX reads the Llama family only
        if which not in self._sound:
            self._sound[which] = pieces_of(write_sound_gguf(self.folder / f"sound-{which}.gguf", **SOUND[which]))
        mutator = Mutator(self._sound[which], f"{self.seed}/{number}")
        damage, data = mutator.draw() if number % 3 else mutator.draw_several(2)
        path = self.folder / f"mutation-{self.seed}-{number}.gguf"
        path.write_bytes(data)
        return f"{SOUND[which] or 'llama'}: {damage}", path

    def outcomes(self, count: int) -> Iterator[Outcome]:
        for number in range(count):
            damage, path = self.write(number)
            outcome = tried(number, damage, path, self.engine)
            if not outcome.is_fault:
                path.unlink()
            yield outcome


def tried(number: int, damage: str, path: Path, engine: str) -> Outcome:
    """Load a file and decode from it in a process of its own."""
    with tempfile.TemporaryFile() as said:
        process = os.fork()
        if process == 0:
            _child(path, engine, said.fileno())
        _, status = os.waitpid(process, 0)
        said.seek(0)
        words = said.read().decode("utf-8", errors="replace").strip()
    if os.WIFSIGNALED(status):
        ended = os.WTERMSIG(status)
        result = _HANGS if ended in (signal.SIGALRM, signal.SIGXCPU) else signal.Signals(ended).name
    else:
        result = _NAMES.get(os.WEXITSTATUS(status), "fault")
    return Outcome(number, damage, result, words[-500:])


def _child(path: Path, engine: str, said: int) -> None:
    """Never returns."""
    code = _FAULT
    try:
        os.dup2(said, 1)
        os.dup2(said, 2)
        if hasattr(os, "sched_setaffinity"):
            # One core and so one thread: several would spin on a busy machine, for longer than the limit.
            os.sched_setaffinity(0, {random.choice(list(os.sched_getaffinity(0)))})
        signal.alarm(_WALL_S)
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S + 1))  # also of the trial, a process of its own
        code = _use(path, engine)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _use(path: Path, engine: str) -> int:
    try:
        loaded = _loaded_by_mlx(path) if engine == "mlx" else _loaded(path)
        ids = loaded.tokenizer.encode(loaded.tokenizer.chat("the sky is")) or [0]
        target = LocalTarget("local:mutated", loaded)
        list(autoregressive(target, ids[:32], Settings(max_tokens=TOKENS, temperature=0)))
    except SpecvizError as exc:
        print(exc)
        if not exc.remedy or "hangs" in exc.message or f"exit status -{signal.SIGXCPU}" in exc.message:
            return _FAULT
        return _REFUSED_IN_TRIAL if "ends the GGUF engine" in exc.message else _REFUSED
    return _DECODES


def _loaded(path: Path) -> Model:
    from specviz.engines.llama import model
    from specviz.engines.llama.plan import plan
    from specviz.engines.llama.trial import try_out

    try_out(path)
    return model.load("mutated", plan("mutated", path))


def _loaded_by_mlx(path: Path) -> Model:
    from specviz.engines.mlx import convert, language_model

    with tempfile.TemporaryDirectory() as folder:
        convert.convert(path, Path(folder))
        return language_model.load("mutated", Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=["llama", "mlx"], default="llama")
    parser.add_argument("--only", type=int, help="one mutation, which is kept")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="specviz-mutations-"))
    mutations = Mutations(folder, given.seed, given.engine)
    if given.only is not None:
        damage, path = mutations.write(given.only)
        print(path, tried(given.only, damage, path, given.engine), sep="\n")
        return
    again = f"python -m tests.benchmarks.mutations --engine {given.engine} --seed {given.seed} --only"
    outcomes = list(mutations.outcomes(given.count))
    faults = [outcome for outcome in outcomes if outcome.is_fault]
    report = {
        "engine": given.engine,
        "seed": given.seed,
        "files": len(outcomes),
        "clean": len(outcomes) - len(faults),
        "outcomes": dict(Counter(outcome.result for outcome in outcomes)),
        "trials_that_ended": [f"{o.damage} → {o.said}" for o in outcomes if o.result == _NAMES[_REFUSED_IN_TRIAL]],
        "faults": [
            {
                "damage": fault.damage,
                "result": fault.result,
                "said": fault.said,
                "again": f"{again} {fault.number}",
            }
            for fault in faults
        ],
    }
    print(json.dumps(report, indent=2, ensure_ascii=False))
    if not faults:
        shutil.rmtree(folder)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
