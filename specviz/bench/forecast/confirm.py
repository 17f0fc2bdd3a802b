"""Run the drafts that are predicted to be best, and compare the measurement with the prediction."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from specviz.bench.forecast.forecast import Forecast, Prediction
from specviz.bench.suites.suite import BenchPrompt
from specviz.bench.sweep.rows import BenchRow, rows_of
from specviz.bench.sweep.sweep import OpenPair, Sweep, baselines_of, new_bench
from specviz.core.errors import StoppedError
from specviz.core.wait import Wait


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A forecast and the row that a sweep measured for it, against a baseline of its own."""

    predicted: Forecast
    measured: BenchRow

    @property
    def off(self) -> float | None:
        """Relative error of the predicted tokens per round; None if one of the two is not known."""
        predicted, measured = self.predicted.tokens_per_round, self.measured.tokens_per_round
        return predicted / measured - 1 if predicted and measured else None

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict."""
        return {"predicted": asdict(self.predicted), "measured": self.measured.to_json(), "off": self.off}


def confirm(
    prediction: Prediction,
    prompts: Sequence[BenchPrompt],
    open_pair: OpenPair,
    *,
    n: int = 2,
    wait: Wait = Wait(),
    clock: Callable[[], float] = time.perf_counter,
) -> list[Confirmed]:
    """Measure the n best forecasts of each temperature and rule on the same prompts.

    Forecasts with the same K share a sweep, and so a baseline.

    Raises:
        StoppedError: it was cancelled; a part of a sweep is not a result.
        SpecvizError: the target cannot be opened.
    """
    plan, found = prediction.plan, list[Confirmed]()
    for temperature in plan.temperatures:
        for rule in plan.rules:
            best = prediction.best(temperature, rule, n)
            for k in dict.fromkeys(row.k for row in best):
                rows = [row for row in best if row.k == k]
                small = replace(
                    plan, drafts=tuple(row.draft for row in rows), ks=(k,), temperatures=(temperature,), rules=(rule,),
                    baselines=baselines_of(plan.settings),
                )  # fmt: skip
                bench = new_bench(small, prompts)
                for _ in Sweep(bench, open_pair, wait, clock=clock).run():
                    pass
                if wait.cancelled():
                    raise StoppedError("The confirmation was stopped.")
                measured = {row.cell.draft: row for row in rows_of(bench) if row.cell.baseline is None}
                found += [Confirmed(row, measured[row.draft]) for row in rows]
    return found
