"""The rows of a benchmark as tables for other programs: CSV and Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specviz.bench.statistics import Interval
from specviz.bench.sweep.rows import BenchRow

#: The first characters of what a spreadsheet runs as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

#: Columns of texts and of counts; all others are figures.
_TEXTS = ("draft", "rule", "baseline", "guarantee", "failure")
_COUNTS = ("k", "prompts", "runs", "tokens", "rounds", "billed_prompt_tokens", "billed_completion_tokens", "requests")

Value = str | int | float | None


def table(rows: Sequence[BenchRow]) -> list[dict[str, Value]]:
    """One flat record per row, the same columns in each; None where a figure is not known."""
    positions = max((len(r.reached) for r in rows), default=0)
    domains = list(dict.fromkeys(name for r in rows for name in r.domains))
    return [_record(row, positions, domains) for row in rows]


def to_csv(rows: Sequence[BenchRow]) -> str:
    """With a header; a figure that is not known is an empty field."""
    frame = _frame(rows)
    texts = frame.columns.intersection(_TEXTS)
    frame[texts] = frame[texts].map(_no_formula)
    return str(frame.to_csv(index=False, lineterminator="\n"))


def to_parquet(rows: Sequence[BenchRow]) -> bytes:
    """The same columns, typed; figures that are not known are null."""
    return bytes(_frame(rows).to_parquet(index=False))


def _frame(rows: Sequence[BenchRow]) -> Any:
    """The table as a pandas frame, each column with a type that does not depend on its values."""
    import pandas as pd  # slow to load, and most commands need no table

    frame = pd.DataFrame(table(rows))
    types = dict.fromkeys(_TEXTS, "str") | dict.fromkeys(_COUNTS, "Int64")
    return frame.astype({name: types.get(name, "float64") for name in frame.columns})


def _no_formula(value: str) -> str:
    """A name that somebody else chose must not be run as a formula."""
    return "'" + value if value.startswith(_FORMULA) else value


def _record(row: BenchRow, positions: int, domains: Sequence[str]) -> dict[str, Value]:
    cell, split = row.cell, row.split
    spread = row.spread or (None, None, None)
    record: dict[str, Value] = {
        "draft": cell.draft,
        "k": cell.k,
        "temperature": cell.temperature,
        "rule": "" if cell.baseline else cell.rule,
        "baseline": cell.baseline or "",
        "prompts": row.prompts,
        "runs": row.trials,
        "tokens": row.tokens,
        "rounds": row.rounds,
        "acceptance_rate": row.acceptance,
        **_interval("acceptance_rate", row.acceptance_interval),
        "acceptance_rate_by_prompt": row.acceptance_by_prompt,
        "accepted_per_round": row.accepted_per_round,
        "accepted_per_round_by_prompt": row.accepted_per_round_by_prompt,
        "tokens_per_round": row.tokens_per_round,
        **_interval("tokens_per_round", row.tokens_per_round_interval),
        "tokens_per_round_by_prompt": row.tokens_per_round_by_prompt,
        "tokens_per_second": row.tokens_per_second,
        "tokens_per_second_by_prompt": row.tokens_per_second_by_prompt,
        "tokens_per_second_lower_quartile": spread[0],
        "tokens_per_second_median": spread[1],
        "tokens_per_second_upper_quartile": spread[2],
        "speedup": row.speedup,
        **_interval("speedup", row.speedup_interval),
        "speedup_by_prompt": row.speedup_by_prompt,
        "speedup_per_call": row.speedup_per_call,
        "draft_ms": split.draft_ms,
        "network_ms": split.network_ms,
        "queue_ms": split.queue_ms,
        "target_ms": split.target_ms,
        "call_ms": split.call_ms,
        "rule_ms": split.rule_ms,
        "other_ms": split.other_ms,
        "billed_prompt_tokens": row.billed_prompt,
        "billed_completion_tokens": row.billed_completion,
        "requests": row.requests,
        "guarantee": row.guarantee,
        "failure": row.failure.message if row.failure else "",
    }
    by_position = row.by_position
    for i in range(positions):
        record[f"acceptance_at_{i + 1}"] = by_position[i] if i < len(by_position) else None
    for name in domains:
        found = row.domains.get(name)
        record[f"acceptance_{name}"] = found.acceptance if found else None
        record[f"speedup_{name}"] = found.speedup if found else None
    return record


def _interval(name: str, interval: Interval | None) -> dict[str, Value]:
    return {f"{name}_low": interval.low if interval else None, f"{name}_high": interval.high if interval else None}
