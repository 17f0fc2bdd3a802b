"""docs/architecture.md names files and functions that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
#: `path` or `path: name`; a path with NAME in it is a file that somebody will add.
REFERENCES = sorted(set(re.findall(r"`([\w/.]+\.(?:py|js|css|md))(?:: (\w+))?`", TEXT)))


def found(path: str) -> Path | None:
    return next((p for p in (ROOT / "specviz" / path, ROOT / path) if p.is_file()), None)


def defines(source: str, name: str) -> bool:
    return bool(re.search(rf"^\s*(?:def|class) {name}\b|^{name}\b.*=", source, re.MULTILINE))


@pytest.mark.parametrize(("path", "name"), [r for r in REFERENCES if "NAME" not in r[0]])
def test_what_the_document_names_exists(path: str, name: str) -> None:
    file = found(path)
    assert file is not None, f"{path} is not there"
    assert not name or defines(file.read_text(encoding="utf-8"), name), f"{path} does not define {name}"


def test_every_room_of_the_package_is_in_the_document() -> None:
    rooms = [p.name for p in (ROOT / "specviz").iterdir() if (p / "__init__.py").is_file()]
    assert [room for room in rooms if f"| `{room}` |" not in TEXT] == []
