"""The result of a prediction: figures per draft, K, temperature and rule, and which is best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from specviz.bench.statistics import Interval
from specviz.bench.sweep.plan import PLAIN, SweepPlan
from specviz.bench.sweep.results import json_ready
from specviz.core.errors import SettingsError, SpecvizError
from specviz.core.settings import RuleName

SCHEMA = "specviz.predict/1"

Figure = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
#: No block is longer than 64.
BlockLength = Annotated[int, msgspec.Meta(ge=0, le=64)]
PerPosition = Annotated[tuple[Figure, ...], msgspec.Meta(max_length=64)]


@dataclass(frozen=True, slots=True)
class Forecast:
    """One draft at one K, temperature and rule. What is not known is None.

    Attributes:
        draft, k, temperature, rule: plain decoding is draft `none` with K = 0.
        acceptance: expected accepted / expected tested.
        accepted_per_round, tokens_per_round, drafted_per_round: means over the rounds.
        tokens_per_round_interval: 95 %, by bootstrap over the texts.
        speedup: against plain decoding, timed at the same places.
        draft_ms, verify_ms: of a mean round; verify_ms includes the rule and the loop.
        reached, kept: expected counts per position of the block.
    """

    draft: str
    k: BlockLength
    temperature: float
    rule: RuleName
    acceptance: Figure | None
    accepted_per_round: Figure | None
    tokens_per_round: Figure | None
    drafted_per_round: Figure | None
    speedup: Figure | None
    draft_ms: Figure | None
    verify_ms: Figure | None
    tokens_per_round_interval: Interval | None = None
    rounds: Figure = 0.0
    reached: PerPosition = ()
    kept: PerPosition = ()

    @property
    def name(self) -> str:
        """For a sentence."""
        return "plain decoding" if self.draft == PLAIN else f"{self.draft} with K = {self.k}"


@dataclass(frozen=True, slots=True)
class Prediction:
    """Expected counts of every draft, K, temperature and rule, from one text per prompt.

    Attributes:
        plan: what was to be predicted; its repeats and warm-up are not used.
        given: the texts are the prompts' answers, not written by the target.
        rows: one per draft, K, temperature and rule; one for plain decoding, if it was named.
        plain_ms: by temperature: a token of plain decoding, timed among the other calls.
        written_ms: by temperature: the same, while the target wrote the texts; absent where it wrote none.
        verify_ms: by temperature and number of drafted tokens: one call, without rule and loop.
        texts, tokens: how many the means are over. left_out: why a prompt does not fit, by its id.
        seconds: of the whole prediction; writing_s: of the texts; timing_s: of the times.
    """

    plan: SweepPlan
    given: bool
    rows: tuple[Forecast, ...]
    plain_ms: dict[float, Positive | None]
    written_ms: dict[float, Figure]
    verify_ms: dict[float, dict[int, Positive]]
    texts: int
    tokens: int
    seconds: float
    writing_s: float
    timing_s: float
    left_out: dict[str, str] = field(default_factory=dict)

    def ranking(self, temperature: float, rule: RuleName) -> list[Forecast]:
        """Each draft at its best K, the fastest first; the smaller K of two whose rounded speed-ups are equal.

        Without times the order is that of tokens per round.
        """
        best: dict[str, Forecast] = {}
        for row in self._sorted(temperature, rule):
            best.setdefault(row.draft, row)
        return list(best.values())

    def best(self, temperature: float, rule: RuleName, n: int = 2) -> list[Forecast]:
        """The n rows that are worth a run: each draft's best first, then other rows; never plain decoding."""
        first = self.ranking(temperature, rule)
        others = [row for row in self._sorted(temperature, rule) if row not in first]
        return [row for row in (*first, *others) if row.draft != PLAIN][:n]

    def _sorted(self, temperature: float, rule: RuleName) -> list[Forecast]:
        rows = (row for row in self.rows if row.temperature == temperature and row.rule == rule)
        return sorted(rows, key=lambda row: (-round(row.speedup or 0.0, 2), row.k if row.speedup else 0, -_length(row)))

    def words(self, temperature: float, rule: RuleName) -> str:
        """The ranking in a sentence; "do not speculate here" where nothing is faster than plain decoding."""
        drafts = [row for row in self.ranking(temperature, rule) if row.draft != PLAIN]
        if not drafts:
            return "There is no draft to rank."
        if drafts[0].speedup is None:
            return f"By tokens per round: {_listed(drafts)}. Nothing was timed."
        best = f"{drafts[0].name}, {drafts[0].speedup:.2f} × plain decoding"
        if drafts[0].speedup <= 1:
            return f"Do not speculate here: the best would be {best}."
        rest = drafts[1:]
        return f"{best}, is predicted to be the fastest" + (f"; then {_listed(rest)}." if rest else ".")

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict."""
        return {
            "schema": SCHEMA,
            "plan": self.plan.to_json(),
            "given": self.given,
            "texts": self.texts,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "writing_s": self.writing_s,
            "timing_s": self.timing_s,
            "left_out": self.left_out,
            "plain_ms": {f"{t:g}": ms for t, ms in self.plain_ms.items()},
            "written_ms": {f"{t:g}": ms for t, ms in self.written_ms.items()},
            "verify_ms": {f"{t:g}": {str(n): ms for n, ms in calls.items()} for t, calls in self.verify_ms.items()},
            "rows": json_ready(self.rows),
            "ranking": [
                {
                    "temperature": temperature,
                    "rule": rule,
                    "drafts": [row.draft for row in self.ranking(temperature, rule)],
                    "words": self.words(temperature, rule),
                }
                for temperature in self.plan.temperatures
                for rule in self.plan.rules
            ],
        }

    @classmethod
    def from_json(cls, data: Any) -> Prediction:
        """Read what `to_json` gave.

        Raises:
            SettingsError: it is damaged.
        """
        try:
            return msgspec.convert(data, cls, str_keys=True)
        except SpecvizError as exc:
            raise SettingsError(f"The saved prediction is damaged: {exc.message}", "Predict again.") from exc
        except (msgspec.ValidationError, TypeError, ValueError) as exc:
            raise SettingsError(f"The saved prediction is damaged: {exc}.", "Predict again.") from exc


def _length(row: Forecast) -> float:
    return row.tokens_per_round or 0.0


def _listed(rows: Sequence[Forecast]) -> str:
    return ", ".join(row.name + ("" if row.speedup is None else f" ({row.speedup:.2f} ×)") for row in rows)
