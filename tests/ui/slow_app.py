"""The Live page over the real host, with the toy pair and half a second per step of the target: two runs can meet."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from specviz.core.pair import Pair  # noqa: E402
from specviz.host.models import ModelHost  # noqa: E402
from specviz.setup import catalog, validation  # noqa: E402
from specviz.setup.builder import Builder  # noqa: E402
from specviz.ui import live  # noqa: E402

STEP_S = 0.5


class SlowTarget:
    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def verify(self, *asked: Any) -> Any:
        time.sleep(STEP_S)
        return self._target.verify(*asked)


class SlowBuilder(Builder):
    def build(self, *asked: Any) -> Pair:
        pair = super().build(*asked)
        return Pair(pair.drafter, SlowTarget(pair.target))


def make_host() -> ModelHost:
    return ModelHost(SlowBuilder, validation.check)


live.show(SimpleNamespace(targets=catalog.targets, drafts=catalog.drafts, make_host=make_host))
