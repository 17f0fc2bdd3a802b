"""Which prompts the options of `bench` and `predict` mean."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from specviz.bench.suites.suite import Suite, builtin
from specviz.cli.suite_options import add_suite_options, suite_of
from specviz.core.errors import SettingsError


def suite(*words: str) -> Suite:
    parser = argparse.ArgumentParser()
    add_suite_options(parser)
    return suite_of(parser.parse_args(words))


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    rows = ['{"prompt": "one", "domain": "a"}', "{broken", '{"prompt": "two", "domain": "a"}', '{"prompt": "x"}']
    path.write_text("\n".join([*rows, *["{"] * 30]))
    return path


def test_the_built_in_suite_is_the_default_and_can_be_cut() -> None:
    assert suite() == builtin()
    cut = suite("--per-domain", "2", "--limit", "5")
    assert cut == builtin().first(2, 5) and len(cut.prompts) == 5


def test_bad_rows_are_refused_unless_they_are_to_be_skipped(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SettingsError, match="line 2"):
        suite("--suite", str(bad))
    found = suite("--suite", str(bad), "--skip-bad", "--per-domain", "1")
    assert [p.text for p in found.prompts] == ["one", "x"]
    err = capsys.readouterr().err
    assert "skipped line 2:" in err and "skipped 11 more rows" in err and err.count("\n") == 21


def test_a_limit_stops_in_front_of_what_is_bad(bad: Path) -> None:
    assert [p.text for p in suite("--suite", str(bad), "--limit", "1").prompts] == ["one"]


def test_what_is_about_a_file_needs_one() -> None:
    with pytest.raises(SettingsError, match="--column describes a file"):
        suite("--column", "q")


def test_a_bad_row_cannot_command_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"prompt": "fine"}\n{"prompt": 1, "\\u001b[2J": 2}\n')
    suite("--suite", str(path), "--skip-bad")
    assert "\x1b" not in capsys.readouterr().err
