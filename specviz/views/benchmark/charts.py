"""All charts of a benchmark, by name."""

from __future__ import annotations

from collections.abc import Sequence

from specviz.bench.sweep.rows import BenchRow, baseline_of
from specviz.views.benchmark import figures
from specviz.views.figures.frame import Chart

NAMES = ("bench_map", "bench_bars", "bench_positions", "bench_domains")


def charts_of(rows: Sequence[BenchRow], temperature: float, rule: str) -> dict[str, Chart]:
    """All charts at one temperature and rule, by name."""
    shown = figures.speculative(rows, temperature, rule)
    plain = baseline_of(rows, temperature)
    name = (plain.cell.baseline if plain else None) or "plain decoding"
    drawn = (
        figures.speed_map(shown),
        figures.speed_bars(shown, name),
        figures.positions(shown),
        figures.domains(shown),
    )
    return dict(zip(NAMES, drawn, strict=True))
