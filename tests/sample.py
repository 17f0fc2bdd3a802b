"""Which of many slow cases a run of the tests takes."""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")


def sample(cases: Sequence[Case], n: int) -> list[Case]:
    """`n` of the cases, always the same ones; with SPECVIZ_ALL_CASES=1 all of them."""
    if os.environ.get("SPECVIZ_ALL_CASES") == "1":
        return list(cases)
    return random.Random(n).sample(cases, n)
