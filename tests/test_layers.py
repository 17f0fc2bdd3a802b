"""Imports go down the levels of DESIGN section 2 only, and the core stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "specviz"

#: Longest prefix wins. L0 values, L1 maths and ports, L2 loop and folds, L3 everything that does one job,
#: L4 what puts those together: names for a run, and the training of drafts, which needs the models but no drafter and
#: no target. L5 what a person touches.
LEVELS = {
    "specviz": 0,
    "specviz.errors": 0,
    "specviz.settings": 0,
    "specviz.events": 0,
    "specviz.packed": 0,
    "specviz.sampling": 1,
    "specviz.ports": 1,
    "specviz.alternatives": 1,
    "specviz.text_rows": 1,
    "specviz.prompt": 2,
    "specviz.metrics": 2,
    "specviz.decoding": 2,
    "specviz.baseline": 2,
    "specviz.trace": 2,
    "specviz.trial": 2,
    "specviz.report": 2,
    "specviz.environment": 3,
    "specviz.connection": 2,
    "specviz.pace": 2,
    "specviz.pair": 2,
    "specviz.job": 2,
    "specviz.bench": 2,
    "specviz.bench_job": 3,
    "specviz.run": 3,
    "specviz.task": 3,
    "specviz.check": 3,
    "specviz.runner": 3,
    "specviz.models": 3,
    "specviz.drafters": 3,
    "specviz.targets": 3,
    "specviz.views": 3,
    "specviz.catalog": 4,
    "specviz.remote_target": 4,
    "specviz.diagnosis": 4,
    "specviz.distill": 4,
    "specviz.ui": 5,
    "specviz.cli": 5,
    "specviz.__main__": 5,
}
#: L3 packages do not know each other; only L4 puts them together.
ISLANDS = {
    "specviz.models": "models",
    "specviz.drafters": "drafters",
    "specviz.targets": "targets",
    "specviz.views": "views",
    "specviz.run": "runs",
    "specviz.task": "runs",
    "specviz.check": "runs",
    "specviz.bench_job": "runs",
    "specviz.runner": "runs",
}
STDLIB_ONLY = {"specviz", "specviz.errors", "specviz.settings", "specviz.events", "specviz.packed"}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def key_of(module: str) -> str | None:
    names = module.split(".")
    prefixes = (".".join(names[:n]) for n in range(len(names), 0, -1))
    return next((p for p in prefixes if p in LEVELS and (p != "specviz" or module == "specviz")), None)


def imports_of(source: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            base = node.module or ""
            found |= {f"{base}.{a.name}" if key_of(f"{base}.{a.name}") else base for a in node.names}
    return found


def broken_arrows(module: str, source: str) -> list[str]:
    own = key_of(module)
    if own is None:
        return [f"{module} has no level: give it one"]
    broken = []
    for imported in imports_of(source):
        root = imported.split(".")[0]
        if root != "specviz":
            if own in STDLIB_ONLY and root not in sys.stdlib_module_names:
                broken.append(f"{module} (L0) imports the third-party {imported}")
            if root == "streamlit" and own != "specviz.ui":
                broken.append(f"{module} imports streamlit; only specviz.ui may")
            continue
        other = key_of(imported)
        if other is None:
            broken.append(f"{module} imports {imported}, which has no level")
        elif LEVELS[other] > LEVELS[own]:
            broken.append(f"{module} (L{LEVELS[own]}) imports {imported} (L{LEVELS[other]}): upwards")
        elif own in ISLANDS and other in ISLANDS and ISLANDS[own] != ISLANDS[other]:
            broken.append(f"{module} imports {imported}: two packages of one level")
        elif other in ("specviz.models", "specviz.drafters", "specviz.targets") and LEVELS[own] == 5:
            allowed = imported in ("specviz.models.store", "specviz.models.known", "specviz.models")
            if not (own == "specviz.cli" and allowed):
                broken.append(f"{module} imports {imported}: only the catalog may")
    return broken


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    assert broken_arrows(module_of(path), path.read_text()) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("specviz.sampling", "import specviz.decoding"),
        ("specviz.decoding", "from specviz import runner"),
        ("specviz.events", "import numpy"),
        ("specviz.views.tree", "import streamlit as st"),
        ("specviz.targets.local", "from specviz.models.toy import ToyScorer"),
        ("specviz.run", "from specviz.views import words"),
        ("specviz.ui.live", "from specviz.drafters.ngram import NgramDrafter"),
        ("specviz.newcomer", "import json"),
    ],
)
def test_the_check_sees_each_wrong_arrow(module: str, source: str) -> None:
    assert broken_arrows(module, source)


def test_modules_of_one_level_do_not_import_in_a_circle() -> None:
    graph = {module_of(p): imports_of(p.read_text()) for p in PACKAGE.rglob("*.py")}
    graph = {m: {i for i in found if i in graph and i != m} for m, found in graph.items()}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " → ".join((*trail, module))
        if module not in done:
            for imported in graph[module]:
                visit(imported, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_the_loop_imports_nothing_heavy() -> None:
    code = (
        "import sys, specviz.decoding, specviz.trace, specviz.report;"
        "loaded = {m.split('.')[0] for m in sys.modules};"
        "heavy = {'streamlit', 'mlx', 'plotly', 'grpc', 'openai', 'transformers'} & loaded;"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
