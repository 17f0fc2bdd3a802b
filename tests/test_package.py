"""What pyproject.toml says is what the tree has."""

from __future__ import annotations

import tomllib
from pathlib import Path

import specviz
from specviz import __main__

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_is_the_one_of_the_changelog() -> None:
    first = next(line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))
    assert first.startswith(f"## {specviz.__version__}")


def test_the_command_is_the_one_that_the_module_runs() -> None:
    module, _, name = PROJECT["project"]["scripts"]["specviz"].partition(":")
    assert (module, name) == (__main__.__name__, __main__.main.__name__)


def test_the_wheel_brings_the_page() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for source in included:
        assert (ROOT / source).exists(), source
    assert set(included.values()) == {f"specviz/site/{source}" for source in included}


def test_requirements_are_listed_once() -> None:
    for name, wanted in (("", "-e ."), ("-dev", "-e .[dev]"), ("-distill", "-e .[distill]")):
        lines = (ROOT / f"requirements{name}.txt").read_text().splitlines()
        assert [line for line in lines if line and not line.startswith("#")] == [wanted]
