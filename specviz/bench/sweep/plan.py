"""What a sweep measures: every draft at every K, temperature and rule, and the baselines."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from specviz.core.errors import SettingsError
from specviz.core.settings import RuleName, Settings
from specviz.record.state import Baseline

PLAIN = "none"
REPEATS_MAX, CELLS_MAX = 20, 400


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing to measure.

    Attributes:
        draft, k, temperature, rule: of speculative decoding; a baseline has no draft, K = 0, and does not use the rule.
        baseline: the kind of plain decoding; None for speculative decoding.
    """

    draft: str
    k: int
    temperature: float
    rule: RuleName = "probabilistic"
    baseline: Baseline | None = None

    @property
    def name(self) -> str:
        """In one line."""
        what = self.baseline or f"{self.draft}, K = {self.k}, {self.rule}"
        return f"{what}, T = {self.temperature:g}"


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """A sweep.

    Attributes:
        settings: target and everything that the cells share; its draft, K, temperature, rule and min_confidence are not
            used.
        drafts, ks, temperatures, rules: each combination is a cell. The baseline is always measured, whether or not
            `none` is among the drafts.
        baselines: kinds of plain decoding; speed-ups are against the first.
        suite: name of the prompts.
        repeats: of each cell on each prompt.
        warm_up: tokens that each cell decodes before it is measured; they are not counted.
        min_confidence: where drafts end early; None: each draft's own default.
    """

    settings: Settings
    drafts: tuple[str, ...]
    ks: tuple[int, ...]
    temperatures: tuple[float, ...] = (0.0,)
    rules: tuple[RuleName, ...] = ("probabilistic",)
    baselines: tuple[Baseline, ...] = ("plain decoding",)
    suite: str = "builtin"
    repeats: int = 1
    warm_up: int = 8
    min_confidence: float | None = None

    def __post_init__(self) -> None:
        """Check what `Settings` does not.

        Raises:
            SettingsError: an empty list, too many cells, or a value that no run may have.
        """
        lists = {"draft": self.drafts, "K": self.ks, "temperature": self.temperatures, "rule": self.rules}
        for what, values in lists.items():
            if not values:
                raise SettingsError(f"A sweep needs at least one {what}.")
            if len(set(values)) < len(values):
                raise SettingsError(f"A {what} is named twice: {', '.join(map(str, values))}.", "Name each once.")
        if not 1 <= self.repeats <= REPEATS_MAX:
            raise SettingsError(f"Repeats must be from 1 to {REPEATS_MAX}, not {self.repeats}.")
        if not 0 <= self.warm_up <= 64:
            raise SettingsError(f"The warm-up must be from 0 to 64 tokens, not {self.warm_up}.")
        cells = self.cells()
        if len(cells) > CELLS_MAX:
            raise SettingsError(f"{len(cells)} cells are more than {CELLS_MAX}.", "Leave out drafts, Ks or rules.")
        for cell in cells:
            self.settings_of(cell)

    def cells(self) -> tuple[Cell, ...]:
        """For each temperature the baselines, then the drafts."""
        drafts = [d for d in self.drafts if d != PLAIN]
        found: list[Cell] = []
        for temperature in self.temperatures:
            found += [Cell(PLAIN, 0, temperature, baseline=kind) for kind in self.baselines]
            found += [Cell(d, k, temperature, rule) for d, k, rule in product(drafts, self.ks, self.rules)]
        return tuple(found)

    def settings_of(self, cell: Cell) -> Settings:
        """The settings of one cell's runs.

        Raises:
            SettingsError: a value breaks its rule.
        """
        return replace(
            self.settings,
            draft=cell.draft,
            k=1 if cell.baseline else cell.k,
            temperature=cell.temperature,
            rule=cell.rule,
            min_confidence=self.min_confidence,
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dict, field by field; `msgspec.convert` reads it."""
        return asdict(self) | {"settings": self.settings.to_json()}
