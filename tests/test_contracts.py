"""What docs/architecture.md says of contracts, asked of the source: each rule has one place."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in sorted(ROOT.glob("specviz/**/*.py"))}


def code(source: str) -> str:
    """The source without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


CODE = {path: code(source) for path, source in SOURCES.items()}


def places(pattern: str, *allowed: str) -> list[str]:
    """Where a pattern stands in code, outside of the files that are allowed to hold it."""
    return [
        f"{path}: {line.strip()}"
        for path, text in CODE.items()
        if path not in {f"specviz/{name}" for name in allowed}
        for line in text.splitlines()
        if re.search(pattern, line)
    ]


RULES = {
    "names are parsed in core/names.py": (
        r"""(startswith|removeprefix|partition|split)\(\(?['"](openai|local|model|verifier|ngram|toy)\b""",
        ("core/names.py", "engines/mlx/convert.py", "engines/llama/draft_file.py", "core/provenance.py"),
    ),
    "no way means that the target is in this process": (r"""way\b.*==\s*'rows'|way='rows'""", ("core/event_json.py",)),
    "the kind of a baseline is recorded, not told by its speed": (
        r"baseline_tps\s*==|==\s*\S*per_call_tps",
        ("core/event_json.py",),
    ),
    "streams of randomness are opened in core/noise.py": (
        r"np\.random\.(Generator\(|Philox|PCG64)",
        ("core/noise.py",),
    ),
    "the loop is started in core/session.py and core/baseline.py": (
        r"(?<!def )(?<!\.)\b(speculative|autoregressive)\(",
        ("core/session.py", "core/baseline.py", "core/decoding.py"),
    ),
    "a simulated network is unwrapped in core/ports.py": (r"isinstance\([^)]*Distant\)", ("core/ports.py",)),
    "secrets are struck out in core/secrets.py": (r"\.replace\(secret", ("core/secrets.py",)),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_one_place(rule: str) -> None:
    pattern, allowed = RULES[rule]
    assert places(pattern, *allowed) == []


@pytest.mark.parametrize("rule", RULES)
def test_each_pattern_finds_what_it_is_meant_for(rule: str) -> None:
    planted = {
        "names are parsed in core/names.py": "if target.startswith('openai:'): pass",
        "no way means that the target is in this process": "here = started.way == 'rows'",
        "the kind of a baseline is recorded, not told by its speed": "if s.baseline_tps == s.per_call_tps: pass",
        "streams of randomness are opened in core/noise.py": "rng = np.random.Generator(np.random.PCG64(1))",
        "the loop is started in core/session.py and core/baseline.py": "events = speculative(drafter, target)",
        "a simulated network is unwrapped in core/ports.py": "if isinstance(target, Distant): pass",
        "secrets are struck out in core/secrets.py": "text = text.replace(secret, 'x')",
    }
    assert re.search(RULES[rule][0], planted[rule])


def test_no_generator_crosses_a_port() -> None:
    ports = ast.parse(SOURCES["specviz/core/ports.py"])
    assert "Generator" not in {n.attr for n in ast.walk(ports) if isinstance(n, ast.Attribute)}
