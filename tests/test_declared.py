"""Every package that is imported is declared, so that no other package's need for it has to bring it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OWN = {"specviz", "tests", "tools"}
#: What is imported under another name than the package's.
PACKAGES = {
    "dotenv": "python-dotenv",
    "scipy_openblas32": "scipy-openblas32",
    "huggingface_hub": "huggingface-hub",
    "ik_llama_cpp": "ik-llama-cpp-python",
}
RUNS = ["specviz", "app.py", "pages"]


def _declared(*extras: str) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [*project["dependencies"], *(line for e in extras for line in project["optional-dependencies"][e])]
    return {re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() for line in lines}


def _imported(places: list[str]) -> dict[str, str]:
    """Packages from elsewhere, each with a file that imports it."""
    found: dict[str, str] = {}
    for place in places:
        whole = ROOT / place
        for path in sorted(whole.rglob("*.py")) if whole.is_dir() else [whole]:
            for name in _names(ast.parse(path.read_text("utf-8"))):
                if name not in sys.stdlib_module_names | OWN:
                    found.setdefault(PACKAGES.get(name, name).replace("_", "-"), str(path.relative_to(ROOT)))
    return found


def _names(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


@pytest.mark.parametrize(("places", "extras"), [(RUNS, []), (["tests", "tools"], ["dev"])])
def test_what_is_imported_is_declared(places: list[str], extras: list[str]) -> None:
    imported, declared = _imported(places), _declared(*extras)
    assert len(imported) > 5, "the walk found the imports"
    assert {name: where for name, where in imported.items() if name not in declared} == {}
