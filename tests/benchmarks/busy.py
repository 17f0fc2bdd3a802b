"""Beside a busy process: `python -m tests.benchmarks.busy`.

Plain decoding in the engine llama while loops of pure Python want the cores: with the number of threads that specviz
chooses by itself, and with each fixed number, in turn. The model is loaded before the loops start. Prints one JSON
object; nothing here asserts a time. Run it on a machine that is quiet otherwise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from specviz.engines.llama.model import LlamaModel
from specviz.engines.llama.threads import Threads, numbers, usable_cores
from specviz.setup.loading import Loading, load_model
from tests.benchmarks.engines import plain
from tests.benchmarks.figures import Sides, against, in_turn, spread
from tests.llama_server import MODEL
from tests.processes import ended

CHOSEN = "chosen"


@contextmanager
def busy_process() -> Iterator[None]:
    """A loop of pure Python."""
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"], text=True)
    with loop, ended(loop):
        yield


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    model = load_model(MODEL, how=Loading("llama"))
    assert isinstance(model, LlamaModel)
    out: dict[str, Any] = {"threads chosen before the loops": model.threads.number}
    sides: Sides = {CHOSEN: plain(model, asked.tokens)}
    for number in numbers(usable_cores()):
        sides[f"threads={number}"] = plain(replace(model, threads=Threads(number)), asked.tokens)
    with ExitStack() as stack:
        for _ in range(asked.loops):
            stack.enter_context(busy_process())
        found = in_turn(sides, asked.pairs)
    best = max((name for name in found if name != CHOSEN), key=lambda name: statistics.median(found[name]))
    return out | {
        "loops": asked.loops,
        "tokens per second": {name: spread(values) for name, values in found.items()},
        f"{CHOSEN} ÷ {best}": against(found[CHOSEN], found[best]),
        "threads chosen at the end": model.threads.number,
    }


def main() -> None:
    p = argparse.ArgumentParser(prog="python -m tests.benchmarks.busy", description=__doc__)
    p.add_argument("--loops", type=int, default=2)
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--tokens", type=int, default=256)
    print(json.dumps(measure(p.parse_args()), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
