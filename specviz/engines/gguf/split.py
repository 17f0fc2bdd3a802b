"""Models in several GGUF files, `NAME-00001-of-0000N.gguf`. The llama engine reads all of them by the first."""

from __future__ import annotations

import re
from pathlib import Path

from specviz.core.errors import UnsupportedModelError
from specviz.engines.gguf.read import GgufFile, damaged, read_gguf

#: The name of a part without its ending. More than 999 parts are taken for a name that only looks like one.
PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>00\d{3})", re.IGNORECASE)


def parts_of(path: Path) -> list[Path]:
    """All files of a model, by one of them, in order; only the file itself for a model in one file."""
    part = PART.fullmatch(path.stem) if path.suffix.lower() == ".gguf" else None
    if part is None or not 1 <= int(part["number"]) <= int(part["count"]):
        return [path]
    numbers = range(1, int(part["count"]) + 1)
    return [path.with_name(f"{part['stem']}-{n:05}-of-{part['count']}{path.suffix}") for n in numbers]


def refuse_missing(path: Path) -> list[Path]:
    """As `parts_of`, all of which are there.

    Raises:
        UnsupportedModelError: naming the first that is not.
    """
    parts = parts_of(path)
    missing = [part.name for part in parts if not part.is_file()]
    if missing and len(parts) > 1:
        more = f", nor are {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UnsupportedModelError(
            f"{path.name} is one of {len(parts)} parts of a model, and {missing[0]} is not beside it{more}.",
            "Put all parts into the same folder.",
        )
    return parts


def read_model(path: Path) -> GgufFile:
    """Read and check all files of a model.

    Args:
        path: of any part.

    Returns:
        The metadata of the first file, and the tensors of all. `begin` is counted from the beginning of each file.

    Raises:
        UnsupportedModelError: see `read_gguf`; a part is missing, is the part of another model, or has lost its name.
    """
    parts = refuse_missing(path)
    files = [read_gguf(part) for part in parts]
    whole = files[0]
    for number, (part, file) in enumerate(zip(parts, files, strict=True)):
        _check_place(part, file, number, len(parts))
        if number:
            if double := next((name for name in file.tensors if name in whole.tensors), ""):
                raise damaged(part, f"its tensor {double!r} is in an earlier part too")
            whole.tensors.update(file.tensors)
    return GgufFile(whole.metadata, whole.types, whole.tensors, sum(file.file_bytes for file in files))


def _check_place(path: Path, file: GgufFile, number: int, count: int) -> None:
    """Refuse a file that says of itself that it is another part than its name says."""
    for key in ("split.no", "split.count"):
        if key in file.metadata and file.types[key] != "u16":
            raise damaged(path, f"its {key!r} is {file.types[key]}, and must be u16")
    here, of = file.metadata.get("split.no", 0), file.metadata.get("split.count", 0)
    if (here, of or 1) != (number, count):
        what = f"part {here} of {of}, counted from 0," if of else "a model in one file"
        raise UnsupportedModelError(
            f"{path.name} says of itself that it is {what} and its name says otherwise.",
            "Give each part its name back: NAME-00001-of-0000N.gguf.",
        )
