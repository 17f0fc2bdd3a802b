"""The files of a model that is split, by the name of one: `NAME-00001-of-0000N.gguf`.

What the files say of each other is read by `engines/gguf/parts.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

from specviz.core.errors import UnsupportedModelError

#: The name of a part without its ending. More than 999 parts are taken for a name that only looks like one.
PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>00\d{3})", re.IGNORECASE)


def parts_of(path: Path) -> list[Path]:
    """All files of a model, by one of them, in order; only the file itself for a model in one file."""
    part = PART.fullmatch(path.stem) if path.suffix.lower() == ".gguf" else None
    if part is None or not 1 <= int(part["number"]) <= int(part["count"]):
        return [path]
    numbers = range(1, int(part["count"]) + 1)
    return [path.with_name(f"{part['stem']}-{n:05}-of-{part['count']}{path.suffix}") for n in numbers]


def first_part(path: Path) -> Path:
    """The first file of a model, by one of them.

    Raises:
        UnsupportedModelError: a part is not beside the others; the first such is named.
    """
    parts = parts_of(path)
    missing = [part.name for part in parts if not part.is_file()]
    if missing and len(parts) > 1:
        more = f", nor are {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UnsupportedModelError(
            f"{path.name} is one of {len(parts)} parts of a model, and {missing[0]} is not beside it{more}.",
            "Put all parts into the same folder.",
        )
    return parts[0]
