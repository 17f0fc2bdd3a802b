"""Imports go down the rooms of docs/architecture.md only, without circles, and the core stays light."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "specviz"

#: The rooms, from the ground up. A room may import those of lower floors; rooms of one floor do not know each other.
FLOORS = (
    ("core",),
    ("net", "record", "engines"),
    ("store",),
    ("drafters", "targets"),
    ("setup",),
    ("host",),
    ("server", "bench", "observe", "distill"),
    ("proof",),
    ("views",),
    ("ui", "cli"),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
#: Files beside the rooms: the version, the Python API, and what `python -m specviz` starts.
BESIDE = {"specviz": -1, "specviz.api": len(FLOORS), "specviz.__main__": len(FLOORS)}
#: Libraries that may be imported in one place only.
OWNERS = {
    "streamlit": ("specviz.ui",),
    "mlx": ("specviz.engines.mlx", "specviz.distill"),
    "mlx_lm": ("specviz.engines.mlx", "specviz.distill"),
    "ik_llama_cpp": ("specviz.engines.llama",),
    "httpx2": ("specviz.net", "specviz.server.http"),
    "openai": ("specviz.targets.completions.wire",),
}
CORE_LIBRARIES = {"numpy", "msgspec"}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The room of a module; the module itself where it is in none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "specviz" and parts[1] in FLOOR else module


def floor_of(module: str) -> int | None:
    room = room_of(module)
    return FLOOR.get(room, BESIDE.get(room))


def imports_of(source: str) -> set[str]:
    """Everything that is imported; `from specviz.core import events` counts as the module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            base = node.module or ""
            as_modules = {f"{base}.{a.name}" for a in node.names if is_module(f"{base}.{a.name}")}
            found |= as_modules
            if len(as_modules) < len(node.names):
                found.add(base)
    return found


def is_module(dotted: str) -> bool:
    path = ROOT.joinpath(*dotted.split("."))
    return dotted.startswith("specviz") and (path.is_dir() or path.with_suffix(".py").is_file())


def broken_arrows(module: str, source: str) -> list[str]:
    floor = floor_of(module)
    if floor is None:
        return [f"{module} is in no room"]
    broken = []
    for imported in imports_of(source):
        library = imported.split(".")[0]
        if library != "specviz":
            if room_of(module) == "core" and library not in sys.stdlib_module_names | CORE_LIBRARIES:
                broken.append(f"{module} imports {imported}: the core knows {', '.join(sorted(CORE_LIBRARIES))} alone")
            owners = OWNERS.get(library)
            if owners and not any(module == o or module.startswith(f"{o}.") for o in owners):
                broken.append(f"{module} imports {imported}: only {' and '.join(owners)} may")
            continue
        other = floor_of(imported)
        if other is None:
            broken.append(f"{module} imports {imported}, which is in no room")
        elif other > floor:
            broken.append(f"{module} (floor {floor}) imports {imported} (floor {other}): upwards")
        elif other == floor and room_of(imported) != room_of(module):
            broken.append(f"{module} imports {imported}: two rooms of one floor")
        elif room_of(imported) in ("drafters", "targets") and room_of(module) in ("ui", "cli"):
            broken.append(f"{module} imports {imported}: only setup makes drafters and targets")
    return broken


def at_run_time(source: str) -> str:
    """The source without what only type checkers import."""
    tree = ast.parse(source)
    tree.body = [n for n in tree.body if not (isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")]
    return ast.unparse(tree)


SOURCES = {module_of(p): p.read_text() for p in sorted(PACKAGE.rglob("*.py"))}
# The package shows names of its API, and loads them at their first use.
SOURCES["specviz"] = at_run_time(SOURCES["specviz"])


@pytest.mark.parametrize("module", SOURCES)
def test_imports_go_down(module: str) -> None:
    assert broken_arrows(module, SOURCES[module]) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("specviz.core.sampling", "import specviz.record.state"),
        ("specviz.core.decoding", "from specviz.host import thread"),
        ("specviz.core.events", "import pandas"),
        ("specviz.views.tree", "import streamlit as st"),
        ("specviz.store.store", "import mlx.core as mx"),
        ("specviz.engines.toy", "from specviz.record.state import RunState"),
        ("specviz.targets.local", "from specviz.drafters.ngram import NgramDrafter"),
        ("specviz.host.run", "from specviz.views import words"),
        ("specviz.ui.live", "from specviz.drafters.ngram import NgramDrafter"),
        ("specviz.newcomer", "import json"),
        ("specviz.newcomer.thing", "import json"),
    ],
)
def test_the_check_sees_each_wrong_arrow(module: str, source: str) -> None:
    assert broken_arrows(module, source)


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {m: {i for i in imports_of(source) if i in SOURCES and i != m} for m, source in SOURCES.items()}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " → ".join((*trail, module))
        if module not in done:
            for imported in graph[module]:
                visit(imported, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_a_class_name_is_used_once() -> None:
    names = Counter(
        node.name
        for source in SOURCES.values()
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_the_core_imports_nothing_heavy() -> None:
    modules = [m for m in SOURCES if m.startswith(("specviz.core.", "specviz.record."))]
    code = (
        f"import sys, {', '.join(modules)};"
        "loaded = {m.split('.')[0] for m in sys.modules};"
        "heavy = {'streamlit', 'mlx', 'plotly', 'grpc', 'openai', 'transformers', 'pandas', 'pydantic'} & loaded;"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
