"""Files that version 0.2 saved still load, with the same figures.

`fixtures/` has a benchmark and a prediction of the toy pair, written by that version.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specviz.bench.forecast.forecast import Prediction
from specviz.bench.planning import sources
from specviz.bench.sweep.compare import compare
from specviz.bench.sweep.results import dumps, loads, read
from specviz.bench.sweep.rows import rows_of
from specviz.core.errors import SettingsError

FIXTURES = Path(__file__).parent / "fixtures"
BENCH, PREDICTION = FIXTURES / "bench-0.2.json", FIXTURES / "predict-0.2.json"


def test_a_benchmark_of_version_0_2_has_the_rows_that_it_had() -> None:
    saved = json.loads(BENCH.read_bytes())
    bench = read(BENCH)
    assert [len(bench.plan.cells()), len(bench.prompts), len(bench.trials)] == [5, 3, 15]
    assert bench.prompts[1].before == ("Write a limerick.",) and len(bench.answers[1]) == 1
    assert bench.trials[0].split.rule_ms == saved["trials"][0]["split"]["rule_ms"]
    rows = json.loads(json.dumps([row.to_json() for row in rows_of(bench)]))
    assert [{name: row[name] for name in old} for row, old in zip(rows, saved["rows"], strict=True)] == saved["rows"]


def test_a_benchmark_of_version_0_2_can_be_saved_again() -> None:
    again = loads(dumps(read(BENCH)).encode())
    assert again == read(BENCH)
    saved, written = json.loads(BENCH.read_bytes()), json.loads(dumps(again))
    assert {name: written[name] for name in ("prompts", "trials")} == {n: saved[n] for n in ("prompts", "trials")}


def test_a_prediction_of_version_0_2_ranks_as_it_did() -> None:
    saved = json.loads(PREDICTION.read_bytes())
    prediction = Prediction.from_json(saved)
    written = json.loads(json.dumps(prediction.to_json()))
    assert {**written, "plan": None} == {**saved, "plan": None}
    assert [prediction.words(t, "probabilistic") for t in (0.0, 1.0)] == [r["words"] for r in saved["ranking"]]


@pytest.mark.parametrize(("path", "count"), [(BENCH, 2), (PREDICTION, 4)])
def test_both_can_be_planned_from(path: Path, count: int) -> None:
    found = sources.read(path.read_bytes())
    assert [measured.k for measured in found] == [4] * count
    assert all(measured.plain_ms > 0 and measured.draft_ms > 0 for measured in found)


def test_what_version_0_2_did_not_record_is_said_where_it_is_compared() -> None:
    before, after = read(BENCH), read(BENCH)
    after.machine |= {"engine": "mlx", "precision": "float32"}
    assert compare(before, after).differences == (
        "engine: not recorded, then mlx", "precision: not recorded, then float32",
    )  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_benchmark_that_an_editor_has_saved_again_is_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "b.json").write_bytes(BENCH.read_text().replace("\n", "\r\n").encode(encoding))
    assert read(tmp_path / "b.json") == read(BENCH)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid", "b.json is a Git LFS pointer, not a saved benchmark"),
        (b"<html>", "b.json is an HTML page, not a saved benchmark"),
        (b"", "b.json is an empty file"),
        (b'{"type": "header", "schema": 1}\n{}\n', "b.json is a trace"),
        (PREDICTION.read_bytes(), "b.json is a saved prediction, not a saved benchmark"),
        (b'{"schema": "specviz.bench/1", "schema": "specviz.bench/1"}', "the key 'schema' twice"),
    ],
)
def test_what_is_no_benchmark_is_called_what_it_is(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "b.json").write_bytes(data)
    with pytest.raises(SettingsError, match=words):
        read(tmp_path / "b.json")
