"""Distils the toy, and kills itself, as kill -9 does, at the n-th call of a function.

Usage: python kill.py FOLDER MODULE.FUNCTION N
"""

import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from specviz.distill.pipeline import distill
from specviz.distill.recipe import Recipe

RECIPE = Recipe(target="toy", tokens=4500, steps=12, batch_tokens=512, max_tokens=40, bits=16)


def kill_at(name: str, n: int) -> None:
    """Before the n-th call of a function; the call itself is not made."""
    module, _, function = name.rpartition(".")
    owner: Any = importlib.import_module(module.partition(":")[0])
    for part in module.partition(":")[2].split("."):
        owner = getattr(owner, part) if part else owner
    whole, calls = getattr(owner, function), 0

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == n:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(*args, **kwargs)

    setattr(owner, function, counted)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        kill_at(sys.argv[2], int(sys.argv[3]))
    distill(RECIPE, Path(sys.argv[1]), checkpoint_s=0.0)
